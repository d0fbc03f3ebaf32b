"""When to change the plan: takes statistics, and returns a `PlanChange` when one pays off.

The running plan is compared with the best plan under the same statistics. A change must save more than a share of the
cost (`threshold`), in several comparisons in a row (`patience`), and save its own cost within some seconds (`horizon`).
Plans are compared again once a figure has moved by more than `drift` since the last comparison, however slowly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import TypeVar

from braid.adapt.costing import Costing
from braid.adapt.monitor import HALF_LIFE
from braid.errors import ModelError, PlanningError
from braid.model.checks import check
from braid.model.plan import Plan
from braid.model.statistics import Statistics

Named = TypeVar("Named")


@dataclass(frozen=True, slots=True)
class Policy:
    """When the controller changes the plan.

    `threshold` is the least share of the running plan's cost that a change must save, `patience` the number of
    comparisons in a row that must agree, `horizon` the seconds within which a change must save its own cost, and
    `drift` the relative move of a figure after which plans are compared again. An observation weighs half as much after
    each `half_life`, in seconds.
    """

    threshold: float = 0.2
    patience: int = 2
    horizon: float = 30.0
    drift: float = 0.15
    half_life: float = HALF_LIFE

    def __post_init__(self) -> None:
        check(self.patience, int, "the patience of a policy")
        for name in ("threshold", "horizon", "drift", "half_life"):
            check(getattr(self, name), Real, f"the {name} of a policy")
        if not 0 <= self.threshold < 1:
            raise ModelError(
                f"the threshold is a share of the cost: give 0 or more and less than 1, not {self.threshold}"
            )
        if self.patience < 1:
            raise ModelError(f"the patience of a policy must be 1 or more, not {self.patience}")
        if not (self.horizon > 0 and self.half_life > 0 and self.drift >= 0):
            figures = f"{self.horizon}, {self.half_life} and {self.drift}"
            raise ModelError(f"horizon, half-life and drift cannot be {figures}; give positive numbers")


@dataclass(frozen=True, slots=True)
class PlanChange:
    """A change of plan that the controller asks for.

    Costs are in seconds of work per second, as expected at the time of the decision.
    """

    time: float
    before: Plan
    after: Plan
    reason: str
    cost_before: float
    cost_after: float

    @property
    def gain(self) -> float:
        """The share of the running plan's cost that the change is expected to save."""
        return 1 - self.cost_after / self.cost_before


class Controller:
    """Decides on the plan of one query. The same statistics at the same times always give the same plan changes."""

    def __init__(self, plan: Plan, policy: Policy | None = None) -> None:
        self.policy = policy or Policy()
        self.plan = plan
        self.pinned = False
        # The statistics of the last comparison (None: compare at once), the number of comparisons in a row that agreed
        # on a change, and the time of the last change.
        self._compared: Statistics | None = None
        self._agreeing = 0
        self._changed: float | None = None

    def set_plan(self, plan: Plan, time: float) -> None:
        """Take over a plan that was not chosen here."""
        if plan != self.plan:
            self.plan, self._changed = plan, time
        self._compared, self._agreeing = None, 0

    def decide(self, statistics: Statistics, time: float, agreed: int = 1) -> PlanChange | None:
        """A plan change, if the plan should change now. From then on, the new plan counts as the running one.

        `agreed` is the number of batches in a row that gave these statistics; it counts as that many comparisons.
        """
        if self.pinned or not (self._agreeing or self._has_moved(statistics)):
            return None
        try:
            costing = Costing(self.plan.query, statistics)
        except PlanningError:
            return None  # A figure is not known yet.
        best = costing.best(self.plan)
        cost_before, cost_after = costing.cost(self.plan), costing.cost(best)
        saved, horizon = cost_before - cost_after, self._horizon(time)
        saves_enough = saved > self.policy.threshold * cost_before
        if not (saves_enough and saved * horizon > costing.transition(self.plan, best)):
            # Soon after a change the horizon is short: compare again later, even if no figure moves.
            self._compared = None if saves_enough and horizon < self.policy.horizon else statistics
            self._agreeing = 0
            return None
        self._agreeing += agreed
        if self._agreeing < self.policy.patience:
            return None
        reason = _reason(costing.out_of_order(self.plan, self.policy.threshold), cost_before, cost_after)
        change = PlanChange(time, self.plan, best, reason, cost_before, cost_after)
        self.plan, self._changed = best, time
        self._compared, self._agreeing = statistics, 0
        return change

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
            or _differ(known.rates, statistics.rates, drift)
            or _differ(known.populations, statistics.populations, drift)
            or _differ(known.selectivities, statistics.selectivities, drift)
        )


def _differ(before: Mapping[Named, float], after: Mapping[Named, float], drift: float) -> bool:
    if before.keys() != after.keys():
        return True
    return any(abs(after[name] - figure) > drift * max(figure, after[name]) for name, figure in before.items())


def _reason(heads: tuple[str, ...], cost_before: float, cost_after: float) -> str:
    saving = f"another order saves {1 - cost_after / cost_before:.0%} of the work"
    if not heads:
        return saving
    return f"{saving}; a later stream is now cheaper to probe first for new rows of {', '.join(heads)}"
