"""The trial of new orders of probe sequences: what they cost in all shards, and which of them are kept.

The access paths of a head are part of its order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from braid.adapt.controller import Failed, Order, PlanChange, order_of
from braid.adapt.dividing import Dividing
from braid.adapt.monitor import Snapshot
from braid.adapt.observation import TrialSeen
from braid.errors import PlanningError
from braid.model.plan import Plan

ENOUGH_ROWS = 32
"""A verdict on a head needs at least this many sampled rows."""

MOST_BATCHES = 8
"""A trial is over after this many batches, whatever rows have come."""


LEAST_SAVED_BY_PARTS = 0.95
"""Orders by part are kept only if they take at most this share of the work."""


@dataclass(frozen=True, slots=True)
class TrialWork:
    """What a trial has measured: the work per row by the old plan and by the new one."""

    before: float
    measured: float


def estimated_share(change: PlanChange, snapshot: Snapshot, head: str | None = None) -> float | None:
    """The share of the old plan's work that the new one takes by the figures of now: for one head, or for a tree.

    None if a figure is not known.
    """
    try:
        dividing = Dividing(change.after.query, snapshot.cautious, snapshot.cells)
        before, after = (
            dividing.cost(plan) if head is None else dividing.head_cost(plan, head)
            for plan in (change.before, change.after)
        )
    except PlanningError:
        return None
    return after / before if before and after is not None else None


class OrderTrial:
    """Adds up what sampled rows have cost by the old and by the new order of each head that changes its order."""

    def __init__(self, change: PlanChange) -> None:
        self._change = change
        self._batches = 0
        self._last: Mapping[str, TrialSeen] = {}
        self.seen: dict[str, TrialSeen] = dict.fromkeys(change.heads, TrialSeen())

    def add(self, trials: Mapping[str, TrialSeen]) -> None:
        """Take in a batch under trial."""
        self._batches += 1
        self._last = trials
        for head in self.seen:
            self.seen[head] += trials.get(head, TrialSeen())

    @property
    def is_over(self) -> bool:
        return self._batches >= MOST_BATCHES or all(map(self._is_clear, self.seen))

    def _is_clear(self, head: str) -> bool:
        """Whether enough rows were sampled, and the other rows of the last batch did not speak against them."""
        return self.seen[head].rows >= ENOUGH_ROWS and (self._costs_more(head) or not self._was_left(head))

    def _costs_more(self, head: str) -> bool:
        """Whether the new order costs more. Parts must save something: they are not for free."""
        most = LEAST_SAVED_BY_PARTS if len(self._change.after.parts) > len(self._change.before.parts) else 1.0
        return self.seen[head].new_work > most * self.seen[head].old_work

    def _was_left(self, head: str) -> bool:
        return head in self._last and self._last[head].left > 0

    @property
    def failed(self) -> tuple[str, ...]:
        """The heads whose rows cost more by the new order, also if only rows showed it that were not sampled."""
        return tuple(head for head in self.seen if self._costs_more(head) or self._was_left(head))

    @property
    def work(self) -> TrialWork | None:
        """The work of all sampled rows; None without any."""
        rows = sum(seen.rows for seen in self.seen.values())
        if not rows:
            return None
        before = sum(seen.old_work for seen in self.seen.values()) / rows
        return TrialWork(before, sum(seen.new_work for seen in self.seen.values()) / rows)

    @property
    def kept(self) -> Plan:
        """The new plan with the old order of each head that failed.

        Two plans with different parts cannot be mixed: then the whole new plan has failed.
        """
        before, after = self._change.before, self._change.after
        if before.parts and before.partitions != after.partitions:
            return before if self.failed else after
        mixed = after.with_orders_of(before, self.failed)
        return mixed if any(mixed.routes(head) != before.routes(head) for head in self.seen) else before

    def failures(self, snapshot: Snapshot) -> list[Failed]:
        """The new orders that failed, with their figures. Orders by part have none: other parts have others."""
        change, failures = self._change, []
        for head in self.failed:
            order, seen = order_of(change.after, head), self.seen[head]
            if change.after.parts or not seen.old_work:
                failures.append(Failed(order))
            else:
                predicted = estimated_share(change, snapshot, head)
                failures.append(Failed(order, predicted, seen.new_work / seen.old_work))
        return failures

    @property
    def successes(self) -> list[Order]:
        """The new orders that did not fail."""
        return [order_of(self._change.after, head) for head in self.seen if head not in self.failed]
