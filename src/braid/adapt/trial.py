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

MOST_WORK_WITH_PARTS = 0.95
"""Orders by part are kept only if they take at most this share of the work."""


@dataclass(frozen=True, slots=True)
class TrialWork:
    """What a trial has measured: the work per row by the old plan and by the new one."""

    before: float
    after: float


def estimated_share(change: PlanChange, snapshot: Snapshot, head: str | None = None) -> float | None:
    """The work of the new plan as a share of the old plan's, by the figures known now; None if one is missing.

    With a `head`, only the work of its probes counts.
    """
    try:
        dividing = Dividing(change.after.query, snapshot.cautious, snapshot.cells)
        plans = (change.before, change.after)
        before, after = (dividing.cost(plan) if head is None else dividing.head_cost(plan, head) for plan in plans)
    except PlanningError:
        return None
    return after / before if before and after is not None else None


class OrderTrial:
    """Adds up the work of sampled rows by the old and by the new order, for each head whose order changes."""

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
        """Whether enough rows were sampled, and no shard has left an order that costs less for the sampled rows."""
        return self.seen[head].rows >= ENOUGH_ROWS and (self._costs_more(head) or not self._was_abandoned(head))

    def _costs_more(self, head: str) -> bool:
        """Whether the new order costs more for sampled rows. More parts must save some work to pay for themselves."""
        has_more_parts = len(self._change.after.parts) > len(self._change.before.parts)
        most = MOST_WORK_WITH_PARTS if has_more_parts else 1.0
        return self.seen[head].new_work > most * self.seen[head].old_work

    def _was_abandoned(self, head: str) -> bool:
        """Whether a shard has left the new order in the last batch, because it cost too much for other rows."""
        return head in self._last and self._last[head].left > 0

    @property
    def failed(self) -> tuple[str, ...]:
        """The heads whose new order cost more for sampled rows, or was left by a shard in the last batch."""
        return tuple(head for head in self.seen if self._costs_more(head) or self._was_abandoned(head))

    @property
    def work(self) -> TrialWork | None:
        """The mean work of all sampled rows; None if there are none."""
        rows = sum(seen.rows for seen in self.seen.values())
        if not rows:
            return None
        old_work = sum(seen.old_work for seen in self.seen.values())
        new_work = sum(seen.new_work for seen in self.seen.values())
        return TrialWork(old_work / rows, new_work / rows)

    @property
    def kept_plan(self) -> Plan:
        """The new plan with the old order of each head that failed.

        Plans with different parts cannot be mixed: if a head fails, all of the old plan is kept.
        """
        before, after = self._change.before, self._change.after
        if before.parts and before.partitions != after.partitions:
            return before if self.failed else after
        mixed = after.with_orders_of(before, self.failed)
        return mixed if any(mixed.routes(head) != before.routes(head) for head in self.seen) else before

    def failures(self, snapshot: Snapshot) -> list[Failed]:
        """The new orders that failed, with their figures. Orders by part go without: other parts have other figures."""
        failures = []
        for head in self.failed:
            order, seen = order_of(self._change.after, head), self.seen[head]
            if self._change.after.parts or not seen.old_work:
                failures.append(Failed(order))
            else:
                predicted = estimated_share(self._change, snapshot, head)
                failures.append(Failed(order, predicted, seen.new_work / seen.old_work))
        return failures

    @property
    def successes(self) -> list[Order]:
        """The new orders that did not fail."""
        return [order_of(self._change.after, head) for head in self.seen if head not in self.failed]
