"""When another plan is worth a change between sites.

The cost of the running plan is compared with that of the plan that a planner finds for the figures known now, by the
cost model of the deployment. A change must save more than the share `threshold` of the cost. It must also earn its own
cost within `horizon` seconds, or, if the running plan is younger than that, within its age. A change costs what it
takes to fill the windows of the new plan, those of joins included, and to run both plans side by side for a while.

If a plan costs more than was predicted, later comparisons are more cautious.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isinf

from braid.adapt.controller import Policy, differ
from braid.adapt.network.filling import filling_cost
from braid.adapt.network.key_histograms import have_moved
from braid.errors import PlanningError
from braid.model.network.topology import Topology
from braid.model.statistics import Statistics
from braid.planning.deployment import Deployment
from braid.planning.partition.repricing import repriced
from braid.planning.planners import Planner, planner_of
from braid.planning.problem import Problem
from braid.planning.solution.partitioned import PartitionedSolution
from braid.planning.solution.written import written_of

OVERLAP = 2.0
"""The seconds that both plans are expected to run side by side, unless the host says otherwise."""

SETTLING = 3.0
"""The cost of a new plan is measured when its longest window has passed, and then this many seconds."""

FORGETTING = 60.0
"""The half-life of a wrong prediction, in seconds."""


@dataclass(frozen=True)
class Proposal:
    """A plan that is worth a change, and why.

    Costs are per second, in the unit of the cost model, by the figures known now: `cost_before` is that of the running
    plan, `cost_after` that of the proposed one. `once` is what the change itself costs.
    """

    plan: Deployment
    reason: str
    cost_before: float
    cost_after: float
    once: float

    @property
    def predicted(self) -> float:
        """The share of the cost that the change is predicted to save."""
        return 1 - self.cost_after / self.cost_before if self.cost_before else 0.0


class Comparison:
    """Compares the running plan of a query with other plans. Times are in seconds since any fixed moment."""

    def __init__(
        self, plan: Deployment, planner: str | Planner, policy: Policy | None = None, *, overlap: float = OVERLAP
    ) -> None:
        self.policy = policy or Policy()
        self._overlap = overlap if self.policy.overlap is None else self.policy.overlap
        self.plan = plan
        self._planner = planner_of(planner)
        self._compared: tuple[Statistics, Topology] | None = None
        self.is_too_early = False
        """Whether the last plan saved enough, but did not pay because the running one is young."""
        self._changed: float | None = None
        self._before: Deployment | None = None
        self._promised: Proposal | None = None
        """The proposal that led to the running plan, until its prediction is judged."""
        self._proposed: Proposal | None = None
        self._error: tuple[float, float] = (1.0, 0.0)
        """The factor by which a plan cost more than predicted, and when that was measured."""

    def changed(self, plan: Deployment, time: float) -> None:
        """Take over the plan that runs from now on."""
        proposed = self._proposed
        is_ours = proposed is not None and written_of(proposed.plan.solution) == written_of(plan.solution)
        self._promised = proposed if is_ours else None
        self._before, self.plan = self.plan, plan
        self._changed, self._compared = time, None

    def caution(self, time: float) -> float:
        """The factor by which to raise estimates, because plans have cost more than predicted before."""
        factor, seen = self._error
        remaining: float = 0.5 ** (max(0.0, time - seen) / FORGETTING)
        return 1 + (factor - 1) * remaining

    def _judge(self, problem: Problem, time: float) -> None:
        """Compare the cost of the running plan with the prediction, once it has run for a while."""
        promised = self._promised
        lengths = [problem.statistics.length(source) or 0.0 for source in problem.query.sources]
        if promised is None or self._changed is None or time - self._changed < SETTLING + max(lengths):
            return
        self._promised = None
        running, before = priced(self.plan, problem), priced(self._before or self.plan, problem)
        if running is not None and before is not None and promised.cost_before and before.cost:
            # Rates may have changed since. The cost that the plan before would have now shows by how much.
            predicted = promised.cost_after * before.cost / promised.cost_before
            error = running.cost / predicted if predicted else 1.0
            if error > self.caution(time):
                self._error = error, time

    def gain(self, statistics: Statistics, topology: Topology) -> float | None:
        """The share of the cost that the last change has saved, by these figures; None if it is not known."""
        if self._before is None:
            return None
        try:
            problem = self.problem(statistics, topology)
        except PlanningError:
            return None
        before, after = priced(self._before, problem), priced(self.plan, problem)
        return 1 - after.cost / before.cost if before is not None and after is not None and before.cost else None

    def best(self, statistics: Statistics, topology: Topology, time: float) -> Proposal | None:
        """The plan to change to by these figures; None if no change pays."""
        if not self._has_moved(statistics, topology):
            return None
        try:
            problem = self.problem(statistics, topology)
            best = Deployment(self._planner.name, self._planner.plan(problem))
        except PlanningError:
            return None  # A figure is not known yet, or out of range.
        return self.weigh(best, problem, time)

    def weigh(self, best: Deployment, problem: Problem, time: float) -> Proposal | None:
        """The proposal to change to a plan; None if that does not pay."""
        self._judge(problem, time)
        self.is_too_early = False
        running = priced(self.plan, problem)
        if running is None:
            return None
        cost_before, cost_after = running.cost, best.cost
        saved, horizon = cost_before - cost_after, self._horizon(time)
        once = filling_cost(problem, running, best) + self._overlap * cost_after
        saves_enough = saved > self.policy.threshold * cost_before
        if not (saves_enough and saved * horizon > once):
            # Soon after a change the horizon is short: compare again later, even if no figure moves.
            self.is_too_early = saves_enough and horizon < self.policy.horizon
            self._compared = None if self.is_too_early else (problem.statistics, problem.topology)
            return None
        reason = f"another plan saves {1 - cost_after / cost_before:.0%} of the cost"
        self._proposed = Proposal(best, reason, cost_before, cost_after, once)
        return self._proposed

    def problem(self, statistics: Statistics, topology: Topology) -> Problem:
        """The planning problem of the query under other statistics, over another topology."""
        running = self.plan.solution.problem
        sink = None if running.sink is None else running.topology.names[running.sink]
        return Problem.of(running.query, statistics, topology, running.model, sink)

    def _has_moved(self, statistics: Statistics, topology: Topology) -> bool:
        if self._compared is None or self._compared[1] != topology:
            return True
        known, drift = self._compared[0], self.policy.drift
        return have_moved(known.histograms, statistics.histograms, drift) or any(
            differ(getattr(known, name), getattr(statistics, name), drift)
            for name in ("rates", "sizes", "selectivities", "fanouts")
        )

    def _horizon(self, time: float) -> float:
        """The seconds within which a change must pay: no more than the running plan has lasted.

        Of the first plan, these are the seconds since there were figures: the first ones tell little. With an infinite
        horizon, every change pays at any time.
        """
        if isinf(self.policy.horizon):
            return self.policy.horizon
        self._changed = time if self._changed is None else min(self._changed, time)  # The clock may have been set back.
        return min(self.policy.horizon, time - self._changed)


def priced(plan: Deployment, problem: Problem) -> Deployment | None:
    """The same plan, priced by another problem; None if it may reuse derived streams."""
    solution = plan.solution
    if solution.problem.offers:
        return None
    if isinstance(solution, PartitionedSolution):
        return Deployment(plan.planner, repriced(solution, problem))
    return Deployment(plan.planner, replace(solution, problem=problem))
