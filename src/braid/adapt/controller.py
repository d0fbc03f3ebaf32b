"""When to change the plan: takes statistics, and returns a `PlanChange` when one may pay off.

The running plan is compared with the best plan by what both may cost: where a figure is uncertain, the most that it may
be counts. The running plan is measured, so its figures are certain. A change must save more than a share of the cost
(`threshold`), and save its own cost within some seconds (`horizon`). Plans are compared again once a figure has moved
by more than `drift` since the last comparison, however slowly.

This only proposes changes. New orders of probe sequences, and new access paths, are on trial first (see `Adaptation`).
What failed waits before it is proposed again: twice as long each time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import TypeVar

from braid.adapt.costing import Costing
from braid.adapt.monitor import HALF_LIFE
from braid.errors import ModelError, PlanningError
from braid.model.checks import check
from braid.model.plan import Plan, Step
from braid.model.statistics import Statistics

Named = TypeVar("Named")

Order = tuple[str, tuple[Step, ...]]
"""A head and its probe sequence with access paths."""


@dataclass(frozen=True, slots=True)
class Policy:
    """When the controller changes the plan.

    `threshold` is the least share of the running plan's cost that a change must save, `horizon` the seconds within
    which a change must save its own cost, and `drift` the relative move of a figure after which plans are compared
    again. In the rates of streams, an observation weighs half as much after each `half_life`, in seconds. While a plan
    changes between sites, the old and the new one are taken to run side by side for `overlap` seconds; None leaves that
    to the host.
    """

    threshold: float = 0.2
    horizon: float = 30.0
    drift: float = 0.15
    half_life: float = HALF_LIFE
    overlap: float | None = None

    def __post_init__(self) -> None:
        for name in ("threshold", "horizon", "drift", "half_life"):
            check(getattr(self, name), Real, f"the {name} of a policy")
        if not 0 <= self.threshold < 1:
            raise ModelError(
                f"the threshold is a share of the cost: give 0 or more and less than 1, not {self.threshold}"
            )
        if not (self.horizon > 0 and self.half_life > 0 and self.drift >= 0):
            figures = f"{self.horizon}, {self.half_life} and {self.drift}"
            raise ModelError(f"horizon, half-life and drift cannot be {figures}; give positive numbers")


def policy_of(adapt: bool | Policy) -> Policy | None:
    """The policy for changing plans that was given as such or as True; None if plans do not change by themselves."""
    if isinstance(adapt, Policy):
        return adapt
    return Policy() if adapt else None


@dataclass(frozen=True, slots=True)
class PlanChange:
    """A change of plan that the controller asks for. If there is a plan `against`, the new plan is on trial against it.

    Costs are in seconds of work per second, as far as they were known at the time of the decision.
    """

    time: float
    before: Plan
    after: Plan
    reason: str
    against: Plan | None = None
    cost_before: float = 0.0
    cost_after: float = 0.0

    @property
    def heads(self) -> tuple[str, ...]:
        """The heads whose probe sequences or access paths differ."""
        return tuple(head for head in self.after.sequences if self.after.routes(head) != self.before.routes(head))


@dataclass(slots=True)
class _Failures:
    """How often an order has failed its trial, and the number of the comparison from which on it may have another."""

    count: int = 0
    waits_until: int = 0


class Controller:
    """Decides on the plan of one query. The same statistics at the same times always give the same plan changes."""

    def __init__(self, plan: Plan, policy: Policy | None = None) -> None:
        self.policy = policy or Policy()
        self.plan = plan
        self.pinned = False
        # The statistics of the last comparison (None: compare at once), and the time of the last change.
        self._compared: Statistics | None = None
        self._changed: float | None = None
        self._comparisons = 0
        self._failures: dict[Order, _Failures] = {}
        self._has_waiting = False  # Whether the last comparison left an order out because it has failed.

    def set_plan(self, plan: Plan, time: float) -> None:
        """Take over a plan that was not chosen here."""
        if plan != self.plan:
            self.plan, self._changed = plan, time
        self._compared = None

    def fail(self, orders: Iterable[Order]) -> None:
        """Do not propose these orders again for some time."""
        for order in orders:
            failures = self._failures.setdefault(order, _Failures())
            failures.count += 1
            failures.waits_until = self._comparisons + 2**failures.count

    def succeed(self, orders: Iterable[Order]) -> None:
        """Forget that these orders have failed."""
        for order in orders:
            self._failures.pop(order, None)

    def decide(self, statistics: Statistics, time: float) -> PlanChange | None:
        """A plan change, if the plan should change now. From then on, the new plan counts as the running one.

        The statistics are cautious ones: every uncertain figure is the most that it may be.
        """
        self._comparisons += 1
        if self.pinned or self.plan.parts or not self._has_moved(statistics):
            return None
        try:
            costing = Costing(self.plan.query, statistics)
        except PlanningError:
            return None  # A figure is not known yet.
        best = self._worthwhile(costing, costing.best(self.plan))
        cost_before, cost_after = costing.cost(self.plan), costing.cost(best)
        saved, horizon = cost_before - cost_after, self._horizon(time)
        saves_enough = saved > self.policy.threshold * cost_before
        if not (saves_enough and saved * horizon > costing.transition(self.plan, best)):
            # Soon after a change the horizon is short, and orders that failed wait: then compare again later, even if
            # no figure moves.
            soon = (saves_enough and horizon < self.policy.horizon) or self._has_waiting
            self._compared = None if soon else statistics
            return None
        reason = self._reason(costing, best, 1 - cost_after / cost_before)
        # A tree keeps join states: it cannot take some of the rows on trial.
        against = self.plan if best.tree is None else None
        change = PlanChange(time, self.plan, best, reason, against, cost_before, cost_after)
        self.plan, self._changed = best, time
        self._compared = statistics
        return change

    def _worthwhile(self, costing: Costing, best: Plan) -> Plan:
        """The running plan with the orders of the best plan that save enough and do not wait after a failure."""
        if best.tree is not None:
            return best
        heads, self._has_waiting = [], False
        for head in best.sequences:
            order = head, best.steps(head)
            waits = order in self._failures and self._comparisons < self._failures[order].waits_until
            self._has_waiting |= waits
            most = (1 - self.policy.threshold) * costing.head_cost(self.plan, head)
            if not waits and costing.head_cost(best, head) < most:
                heads.append(head)
        return self.plan.taking(best, heads)

    def _reason(self, costing: Costing, best: Plan, saved: float) -> str:
        if (best.sequences, best.tree) == (self.plan.sequences, self.plan.tree):
            return f"another index saves {saved:.0%} of the work"
        saving = f"another order saves {saved:.0%} of the work"
        heads = costing.out_of_order(self.plan, self.policy.threshold)
        if not heads:
            return saving
        return f"{saving}; a later stream is now cheaper to probe first for new rows of {', '.join(heads)}"

    def _horizon(self, time: float) -> float:
        """The seconds within which a change must save its own cost: no more than have passed since the last change.

        The next change is expected after as long as the last one has lasted.
        """
        if self._changed is None:
            return self.policy.horizon
        self._changed = min(self._changed, time)  # The clock may have been set back.
        return min(self.policy.horizon, time - self._changed)

    def _has_moved(self, statistics: Statistics) -> bool:
        """Whether a figure has moved by more than `drift` since the last comparison."""
        known, drift = self._compared, self.policy.drift
        return (
            known is None
            or differ(known.rates, statistics.rates, drift)
            or differ(known.populations, statistics.populations, drift)
            or differ(known.selectivities, statistics.selectivities, drift)
            or differ(known.fanouts, statistics.fanouts, drift)
        )


def differ(before: Mapping[Named, float], after: Mapping[Named, float], drift: float) -> bool:
    if before.keys() != after.keys():
        return True
    return any(abs(after[name] - figure) > drift * max(figure, after[name]) for name, figure in before.items())
