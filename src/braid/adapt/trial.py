"""The trial of new orders of probe sequences: what they cost in all shards, and which of them are kept.

The access paths of a head are part of its order.
"""

from __future__ import annotations

from collections.abc import Mapping

from braid.adapt.controller import Order, PlanChange, order_of
from braid.adapt.observation import TrialSeen
from braid.model.plan import Plan

ENOUGH_ROWS = 32
"""A verdict on a head needs at least this many sampled rows."""

MOST_BATCHES = 8
"""A trial is over after this many batches, whatever rows have come."""


LEAST_SAVED_BY_PARTS = 0.95
"""Orders by part are kept only if they take at most this share of the work."""


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
    def kept(self) -> Plan:
        """The new plan with the old order of each head that failed.

        Two plans with different parts cannot be mixed: then the whole new plan has failed.
        """
        before, after = self._change.before, self._change.after
        if before.parts and before.partitions != after.partitions:
            return before if self.failed else after
        mixed = after.taking(before, self.failed)
        return mixed if any(mixed.routes(head) != before.routes(head) for head in self.seen) else before

    def orders(self, *, failed: bool) -> list[Order]:
        """The new orders that failed, or those that did not."""
        return [order_of(self._change.after, head) for head in self.seen if (head in self.failed) == failed]
