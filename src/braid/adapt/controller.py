"""When to change the plan: takes statistics, and returns a `PlanChange` when one may pay off.

The running plan is compared with the best plan by what both may cost: where a figure is uncertain, the most that it may
be counts. The running plan is measured, so its figures are certain. A change must save more than a share of the cost
(`threshold`), and save its own cost within some seconds (`horizon`). Plans are compared again once a figure has moved
by more than `drift` since the last comparison, however slowly.

If no other order saves enough for all keys, orders for parts of the keys may (see `dividing.py`). Parts that do not
save half of `threshold` any more are merged again.

This only proposes changes. New orders of probe sequences, and new access paths, are on trial first (see `Adaptation`).
What failed waits before it is proposed again: twice as long each time. After that, its estimates count as many times as
they were too low in the trial: while no figure moves, an order that cost more is not proposed again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TypeVar

from braid.adapt.cells import Cells
from braid.adapt.costing import Costing
from braid.adapt.dividing import Dividing
from braid.adapt.expectation import UNKNOWN, Expectation
from braid.adapt.monitor import HALF_LIFE
from braid.adapt.observation import SAMPLING
from braid.errors import ModelError, PlanningError
from braid.model.checks import check
from braid.model.parts import show_part
from braid.model.plan import Plan, Route
from braid.model.statistics import Statistics
from braid.model.tree import JoinTree

Named = TypeVar("Named")

Order = tuple[str, tuple[Route, ...] | JoinTree]
"""A head and its probe sequence with access paths; or a tree, which has no head.

Orders by part count as one, whatever the parts: they have none.
"""

TREE = ""
"""Stands for the head in the order of a tree."""

PARTS_CHANGE = 0.1
"""The share of the rows of a stream that must be in other cells before parts are compared again."""

PARTS_SAVE = 1.5
"""Other parts must save this many times as much as another order, because less is known of parts than of all keys."""

PATIENCE = 3
"""Other parts are proposed when more than this many comparisons in a row have asked for some."""


def order_of(plan: Plan, head: str) -> Order:
    """The order of a head, as far as it matters for failures."""
    return head, () if plan.parts else plan.routes(head)


def tree_order(plan: Plan) -> Order:
    """The tree of a plan, as far as it matters for failures."""
    return TREE, () if plan.parts or plan.tree is None else plan.tree


@dataclass(frozen=True, slots=True)
class Policy:
    """When the controller changes the plan.

    `threshold` is the least share of the running plan's cost that a change must save, `horizon` the seconds within
    which a change must save its own cost (with infinity every change pays), and `drift` the relative move of a figure
    after which plans are compared again. In the rates of streams, an observation weighs half as much after each
    `half_life`, in seconds. While a plan changes between sites, the old and the new one are expected to run side by
    side for `overlap` seconds; None leaves that to the host. `sampling` is the most work that samples and comparisons
    may take, as a share of all other work: less of it follows changes later, and infinitely much samples every batch,
    however small.
    """

    threshold: float = 0.2
    horizon: float = 30.0
    drift: float = 0.15
    half_life: float = HALF_LIFE
    overlap: float | None = None
    sampling: float = SAMPLING

    def __post_init__(self) -> None:
        for name in ("threshold", "horizon", "drift", "half_life", "sampling"):
            check(getattr(self, name), Real, f"the {name} of a policy")
        if not 0 <= self.threshold < 1:
            raise ModelError(
                f"the threshold is a share of the cost: give 0 or more and less than 1, not {self.threshold}"
            )
        if not (self.horizon > 0 and self.half_life > 0 and self.drift >= 0):
            figures = f"{self.horizon}, {self.half_life} and {self.drift}"
            raise ModelError(f"horizon, half-life and drift cannot be {figures}; give positive numbers")
        if not self.sampling > 0:
            raise ModelError(f"the sampling of a policy is a share of the work greater than 0, not {self.sampling}")


def policy_of(adapt: bool | Policy) -> Policy | None:
    """The policy for changing plans that was given as such or as True; None if plans do not change by themselves."""
    if isinstance(adapt, Policy):
        return adapt
    return Policy() if adapt else None


@dataclass(frozen=True, slots=True)
class PlanChange:
    """A change of plan that the controller asks for. If there is a plan `against`, the new plan is on trial against it.

    `expected` says what the change should do by the estimates at the time of the decision.
    Costs are in seconds of work per second, as far as they were known at the time of the decision.
    """

    time: float
    before: Plan
    after: Plan
    reason: str
    against: Plan | None = None
    cost_before: float = 0.0
    cost_after: float = 0.0
    expected: Expectation = UNKNOWN

    @property
    def is_of_trees(self) -> bool:
        """Whether one of the plans keeps combinations, so that rows cannot go along either plan."""
        return self.before.keeps_combinations or self.after.keeps_combinations

    @property
    def heads(self) -> tuple[str, ...]:
        """The heads whose probe sequences or access paths differ."""
        return tuple(head for head in self.after.sequences if self.after.routes(head) != self.before.routes(head))


@dataclass(frozen=True, slots=True)
class Failed:
    """An order that has failed its trial: the share that it takes of the work of the order before it.

    `predicted` is that share by the figures at the end of the trial, `measured` that of the trial; None if not known.
    """

    order: Order
    predicted: float | None = None
    measured: float | None = None

    @property
    def error(self) -> float:
        """The factor by which estimates of the order are too low, as far as the trial has shown."""
        if not self.predicted or self.measured is None:
            return 1.0
        # It has failed, so it cost more, even if the rows that were sampled did not.
        return max(1.0, max(1.0, self.measured) / self.predicted)


@dataclass(slots=True)
class _Failures:
    """How often an order has failed its trial, and the number of the comparison from which on it may have another."""

    last: Failed
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
        self._compared_cells: tuple[Cells, ...] = ()
        self._parts_wanted = 0  # The comparisons in a row that have asked for other parts.

    def set_plan(self, plan: Plan, time: float) -> None:
        """Take over a plan that was not chosen here."""
        if plan != self.plan:
            self.plan, self._changed = plan, time
        self._compared = None

    def fail(self, orders: Iterable[Failed]) -> None:
        """Do not propose these orders again for some time, nor while their figures have not moved."""
        for failed in orders:
            failures = self._failures.setdefault(failed.order, _Failures(failed))
            failures.last = failed
            failures.count += 1
            failures.waits_until = self._comparisons + 2**failures.count

    def succeed(self, orders: Iterable[Order]) -> None:
        """Forget that these orders have failed."""
        for order in orders:
            self._failures.pop(order, None)

    def decide(self, statistics: Statistics, time: float, cells: Sequence[Cells] = ()) -> PlanChange | None:
        """A plan change, if the plan should change now. From then on, the new plan counts as the running one.

        The statistics are cautious ones: every uncertain figure is the most that it may be. `cells` say how the rows of
        streams are spread over the keys; without them, no plan has parts.
        """
        self._comparisons += 1
        if self.pinned or not (self._has_moved(statistics) or self._have_moved(cells)):
            return None
        try:
            dividing = Dividing(self.plan.query, statistics, cells)
            cost_before = dividing.cost(self.plan)
            if cost_before is None:
                return None  # Nothing is known of the parts that the user gave.
            self._has_waiting = False
            best, saves_enough = self._choose(dividing, cost_before, time)
        except PlanningError:
            return None  # A figure is not known yet.
        self._compared, self._compared_cells = statistics, tuple(cells)
        if best == self.plan:
            # Soon after a change the horizon is short, and orders that failed wait: then compare again later, even if
            # no figure moves.
            if (saves_enough and self._horizon(time) < self.policy.horizon) or self._has_waiting:
                self._compared = None
            return None
        cost_after = dividing.cost(best) or 0.0
        reason = self._reason(dividing.whole, best, 1 - cost_after / cost_before if cost_before else 0.0)
        change = PlanChange(time, self.plan, best, reason, self.plan, cost_before, cost_after)
        self.plan, self._changed = best, time
        self._parts_wanted = 0
        return change

    def _choose(self, dividing: Dividing, cost_before: float, time: float) -> tuple[Plan, bool]:
        """The plan to change to, or the running one; and whether a plan would save enough if it had more time."""
        costing, horizon, threshold = dividing.whole, self._horizon(time), self.policy.threshold
        whole, almost = costing.best(self.plan), False
        if self.plan.parts:
            if costing.cost(whole) * (1 - threshold / 2) <= cost_before and not self._any_waits(whole):
                return whole, True
            options = []
        else:
            options = [self._worthwhile(dividing, whole)]
        if not self._parts_wait():
            candidates = [self._worthwhile(dividing, plan) for plan in dividing.best(self.plan)]
            options += sorted(candidates, key=lambda plan: dividing.cost(plan) or 0.0)[:1]
        for best in options:
            cost_after = dividing.cost(best)
            saved = cost_before - cost_after if cost_after is not None else 0.0
            least = threshold if best.partitions == self.plan.partitions else min(0.9, PARTS_SAVE * threshold)
            if saved > least * cost_before:
                almost = True
                if saved * horizon > dividing.transition(self.plan, best) and self._is_settled(best):
                    return best, True
        if not almost:
            self._parts_wanted = 0
        return self.plan, almost

    def _is_settled(self, best: Plan) -> bool:
        """Whether the last comparisons have asked for other parts, too. Another order for all keys need not wait.

        Sketches remember keys longer than fan-outs last, so right after a change of the streams they do not fit.
        """
        if best.partitions == self.plan.partitions:
            return True
        self._parts_wanted += 1
        self._has_waiting = True
        return self._parts_wanted > PATIENCE

    def _worthwhile(self, dividing: Dividing, best: Plan) -> Plan:
        """The running plan with the orders of the best plan that save enough and do not wait after a failure."""
        if best.keeps_combinations:
            costs = dividing.cost(self.plan), dividing.cost(best)
            return best if self._may_have_trial(tree_order(best), *costs) else self.plan
        if self.plan.parts:
            return best
        heads = []
        for head in best.sequences:
            costs = dividing.head_cost(self.plan, head), dividing.head_cost(best, head)
            if self._may_have_trial(order_of(best, head), *costs):
                heads.append(head)
        if best.parts:
            return best.with_orders_of(self.plan, [head for head in best.sequences if head not in heads])
        return self.plan.with_orders_of(best, heads)

    def _may_have_trial(self, order: Order, before: float | None, after: float | None) -> bool:
        """Whether an order saves enough and does not wait; if it has failed, its estimates are taken for too low."""
        waits = self._waits(order)
        self._has_waiting |= waits
        if waits or before is None or after is None:
            return False
        error = self._failures[order].last.error if order in self._failures else 1.0
        return after * error < (1 - self.policy.threshold) * before

    def _waits(self, order: Order) -> bool:
        return order in self._failures and self._comparisons < self._failures[order].waits_until

    def _any_waits(self, plan: Plan) -> bool:
        """Whether an order of a plan has failed and waits for another trial."""
        waits = any(self._waits(order_of(plan, head)) for head in plan.sequences)
        self._has_waiting |= waits
        return waits

    def _parts_wait(self) -> bool:
        """Whether orders by part have failed for every head, and wait for another trial."""
        waiting = [self._waits((head, ())) for head in self.plan.sequences]
        self._has_waiting |= any(waiting)
        return all(waiting)

    def _reason(self, costing: Costing, best: Plan, saved: float) -> str:
        if best.parts:
            parts = " and ".join(show_part(partition, best.query) for partition in best.partitions)
            return f"an order of their own for keys with {parts} saves {saved:.0%} of the work"
        if self.plan.parts:
            return f"orders by part save less than {self.policy.threshold / 2:.0%} of the work by now"
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

    def _have_moved(self, cells: Sequence[Cells]) -> bool:
        """Whether keys that may be divided have other shares of the rows than at the last comparison."""
        known = {(type(each), each.attribute_class): each for each in self._compared_cells}
        for each in cells:
            if each.are_different:
                before = known.get((type(each), each.attribute_class))
                if before is None or before.differ(each, PARTS_CHANGE):
                    return True
        return False

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
