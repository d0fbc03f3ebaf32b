"""The trial of new orders of probe sequences: what they cost in all shards, and which of them are kept.

The access paths of a head are part of its order.
"""

from __future__ import annotations

from collections.abc import Mapping

from braid.adapt.controller import Order, PlanChange
from braid.adapt.observation import TrialSeen
from braid.model.plan import Plan

ENOUGH_ROWS = 32
"""A head needs so many sampled rows for a verdict."""

MOST_BATCHES = 8
"""A trial is over after so many batches, whatever has come."""


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
        return self.seen[head].new_work > self.seen[head].old_work

    def _was_left(self, head: str) -> bool:
        return head in self._last and self._last[head].left > 0

    @property
    def failed(self) -> tuple[str, ...]:
        """The heads whose rows cost more by the new order, also if only rows showed it that were not sampled."""
        return tuple(head for head in self.seen if self._costs_more(head) or self._was_left(head))

    @property
    def kept(self) -> Plan:
        """The new plan with the old order of each head that failed."""
        return self._change.after.taking(self._change.before, self.failed)

    def orders(self, *, failed: bool) -> list[Order]:
        """The new orders that failed, or those that did not."""
        return [(head, self._change.after.steps(head)) for head in self.seen if (head in self.failed) == failed]
