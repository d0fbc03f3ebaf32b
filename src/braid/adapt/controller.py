"""When to change the plan: statistics in, now and then an instruction out.

The running plan is compared with the best plan under the same fresh statistics. A change must save a good part of the
cost (`threshold`), in several looks in a row (`patience`), and earn what it costs itself soon enough (`horizon`). Plans
are compared again once a figure has moved by more than `drift` since they were last compared, however slowly.
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
    """How eager the controller is. Shares are of the running plan's cost; horizon and half-life are in seconds.

    What was seen weighs half as much after each `half_life`.
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
            raise ModelError(f"the threshold is a share of the cost, not {self.threshold}; give 0 to 1")
        if self.patience < 1:
            raise ModelError(f"a patience of {self.patience} looks is none; give 1 or more")
        if not (self.horizon > 0 and self.half_life > 0 and self.drift >= 0):
            given = f"{self.horizon}, {self.half_life} and {self.drift}"
            raise ModelError(f"horizon, half-life and drift cannot be {given}; give positive numbers")


@dataclass(frozen=True, slots=True)
class PlanChange:
    """Change the plan. Costs are in seconds of work per second, as expected when the decision was made."""

    time: float
    before: Plan
    after: Plan
    reason: str
    cost_before: float
    cost_after: float

    @property
    def gain(self) -> float:
        """The share of the running cost that the change is expected to save."""
        return 1 - self.cost_after / self.cost_before


class Controller:
    """Decides on the plan of one query. The same statistics at the same times always give the same instructions."""

    def __init__(self, plan: Plan, policy: Policy | None = None) -> None:
        self.policy = policy or Policy()
        self.plan = plan
        self.pinned = False
        self._compared: Statistics | None = None
        self._looks = 0
        self._changed: float | None = None

    def set_plan(self, plan: Plan, time: float) -> None:
        """Somebody else has changed the plan."""
        if plan != self.plan:
            self.plan, self._changed = plan, time
        self._compared, self._looks = None, 0

    def decide(self, statistics: Statistics, time: float, agreed: int = 1) -> PlanChange | None:
        """An instruction, if the plan should change now; from then on it counts as the running one.

        Statistics on which several batches in a row have `agreed` are worth as many looks.
        """
        if self.pinned or not (self._looks or self._has_moved(statistics)):
            return None
        try:
            costing = Costing(self.plan.query, statistics)
        except PlanningError:
            return None  # Some figure is not known yet.
        best = costing.best(self.plan)
        running, reached = costing.cost(self.plan), costing.cost(best)
        saves, horizon = running - reached > self.policy.threshold * running, self._horizon(time)
        if not (saves and (running - reached) * horizon > costing.transition(self.plan, best)):
            # What does not pay so soon after a change may pay later, though nothing moves.
            self._compared = None if saves and horizon < self.policy.horizon else statistics
            self._looks = 0
            return None
        self._looks += agreed
        if self._looks < self.policy.patience:
            return None
        reason = _reason(costing.out_of_order(self.plan, self.policy.threshold), running, reached)
        instruction = PlanChange(time, self.plan, best, reason, running, reached)
        self.plan, self._changed = best, time
        self._compared, self._looks = statistics, 0
        return instruction

    def _horizon(self, time: float) -> float:
        """The seconds in which a change must earn what it costs, before the next one is to be expected."""
        if self._changed is None:
            return self.policy.horizon
        self._changed = min(self._changed, time)  # A clock may have been set back.
        return min(self.policy.horizon, time - self._changed)

    def _has_moved(self, statistics: Statistics) -> bool:
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


def _reason(heads: tuple[str, ...], running: float, reached: float) -> str:
    saved = f"another order saves {1 - reached / running:.0%} of the work"
    if not heads:
        return saved
    return f"{saved}; a later stream is now cheaper to probe first for new rows of {', '.join(heads)}"
