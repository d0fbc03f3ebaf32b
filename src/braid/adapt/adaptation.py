"""The whole loop of one query: what was seen of each batch in, changes of plan out."""

from __future__ import annotations

from braid.adapt.controller import Controller, PlanChange, Policy
from braid.adapt.costing import Costing
from braid.adapt.history import History
from braid.adapt.monitor import Monitor, Snapshot
from braid.adapt.observation import Observation
from braid.errors import PlanError, PlanningError
from braid.model.checks import check
from braid.model.plan import Plan

MOST_AWAITED = 8
"""A change that has not arrived after so many batches is given up, and the plan that runs is taken for what it is."""


class Adaptation:
    """Monitor, controller and history of one query.

    `adapt` is how eagerly to change the plan; with False all is watched, and nothing is changed.
    """

    def __init__(self, plan: Plan, adapt: bool | Policy = True) -> None:
        check(adapt, bool | Policy, "adapt", PlanError)
        policy = adapt if isinstance(adapt, Policy) else Policy()
        self._monitor = Monitor(plan.query, policy.half_life)
        self._controller = Controller(plan, policy)
        self._controller.pinned = not adapt
        self._adapt = bool(adapt)
        self._awaited = 0
        self.history = History()

    @property
    def plan(self) -> Plan:
        """The plan that runs, or has been asked for."""
        return self._controller.plan

    @property
    def pinned(self) -> bool:
        return self._controller.pinned

    def snapshot(self) -> Snapshot:
        return self._monitor.snapshot()

    def observe(self, seen: Observation, time: float, batch: int, running: Plan | None = None) -> PlanChange | None:
        """Take in a batch that ran under a plan (by default the one last asked for); returns what should change.

        While a change is on its way nothing else is decided.
        """
        self._monitor.observe(seen, time)
        arrived = running is None or running == self.plan
        rows = seen.rows(self.plan.query.aliases)
        if rows:
            self.history.count(seen.work / rows, arrived)
        if arrived and rows:
            self._judge()
        if running is not None and not arrived and not self._give_up(running, time, batch):
            return None
        if arrived:
            self._awaited = 0
        statistics = self._monitor.snapshot().statistics
        instruction = self._controller.decide(statistics, time, self._monitor.agreed)
        if instruction is not None:
            self._record(instruction, batch)
        return instruction

    def set_plan(self, plan: Plan, time: float, batch: int, reason: str) -> None:
        """Somebody asks for a plan."""
        if plan != self.plan:
            self.history.record(batch, time, reason, self.plan, plan, None)
        self._controller.set_plan(plan, time)
        self._awaited = MOST_AWAITED

    def pin(self) -> None:
        """Keep the plan, whatever is seen."""
        self._controller.pinned = True

    def unpin(self) -> None:
        """Decide again, if this was ever wanted."""
        self._controller.pinned = not self._adapt

    def _record(self, made: PlanChange, batch: int) -> None:
        self.history.record(batch, made.time, made.reason, made.before, made.after, made.gain)
        self._awaited = MOST_AWAITED

    def _judge(self) -> None:
        """Compare the plans of a change again, once some batches have run under the new one."""
        change = self.history.settled()
        if change is None:
            return
        query = self.plan.query
        try:
            costing = Costing(query, self._monitor.snapshot().statistics)
        except PlanningError:
            return  # Some figure is not known yet.
        before, after = (costing.cost(Plan.of(query, plan)) for plan in (change.before, change.after))
        if before:
            self.history.confirm(1 - after / before)

    def _give_up(self, running: Plan, time: float, batch: int) -> bool:
        """Whether to go on with the plan that runs instead of the one that should."""
        if self._awaited > 1:
            self._awaited -= 1
            return False
        asked = self._awaited == 1
        self.set_plan(
            running, time, batch, "the plan asked for has not arrived" if asked else "as the checkpoint has it"
        )
        self._awaited = 0
        return True
