"""The trial of a new tree: its work per row is compared with what the old tree would have taken for the same rows.

A tree keeps combinations, so that it cannot take some of the rows on trial: it takes all of them at once. What the old
tree would have taken is known from the batches before the change: as much per row, more or less by as much as its
estimated work has moved since then. Streams whose rates or windows grow do not make the new tree look bad.

Left out is the work of completing the new join states, which comes once and was weighed before the change.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from braid.adapt.controller import Failed, Order, PlanChange, tree_order
from braid.adapt.dividing import work_per_row
from braid.adapt.history import SETTLING
from braid.adapt.monitor import Snapshot
from braid.adapt.trial import MOST_BATCHES, TrialWork, estimated_share
from braid.errors import PlanningError
from braid.model.plan import Plan

ENOUGH_ROWS = 256
"""A verdict before the last batch of a trial needs at least this many rows."""

MOST_OVERRUN = 1.5
"""A tree that takes this many times the work of the old one is taken back at once."""


@dataclass(frozen=True, slots=True)
class BatchSeen:
    """The rows of a batch, the work that they took without completions, and the statistics after it, under a tree."""

    rows: int
    work: int
    snapshot: Snapshot | None = None


class TreeTrial:
    """Adds up the work of batches before a change to another tree and since it."""

    def __init__(self, change: PlanChange, before: Iterable[BatchSeen]) -> None:
        self._change = change
        self._batches = self._batches_with_rows = 0
        self._rows = 0
        self._new_work = 0
        self._old_work = 0.0
        self._before: list[BatchSeen] = list(before)
        self._per_row: float | None = change.expected.work_before
        self._scale: float | None = None
        self._weigh()

    def wait(self, batch: BatchSeen) -> None:
        """Take in one more batch under the old tree, before the change has arrived."""
        self._before = [*self._before, batch][-SETTLING:]
        self._weigh()

    def _weigh(self) -> None:
        """Compare the work under the old tree with its estimates."""
        rows, work = sum(seen.rows for seen in self._before), sum(seen.work for seen in self._before)
        if not rows:
            return
        self._per_row = work / rows
        estimates = [(seen, self._estimate(seen.snapshot)) for seen in self._before]
        estimated = sum(estimate * seen.rows for seen, estimate in estimates if estimate)
        work = sum(seen.work for seen, estimate in estimates if estimate)
        self._scale = work / estimated if estimated else None

    def _estimate(self, snapshot: Snapshot | None) -> float | None:
        """The work per row of the old tree by these statistics; None if a figure is not known."""
        if snapshot is None:
            return None
        try:
            return work_per_row(self._change.before, (), snapshot.statistics, snapshot.cells)
        except PlanningError:
            return None

    def add(self, batch: BatchSeen) -> None:
        """Take in a batch under the new tree."""
        self._batches += 1
        if not batch.rows or self._per_row is None:
            return
        estimate = None if self._scale is None else self._estimate(batch.snapshot)
        per_row = self._per_row if estimate is None or self._scale is None else self._scale * estimate
        self._batches_with_rows += 1
        self._rows += batch.rows
        self._new_work += batch.work
        self._old_work += per_row * batch.rows

    @property
    def is_over(self) -> bool:
        if self._batches >= MOST_BATCHES:
            return True
        is_enough = self._rows >= ENOUGH_ROWS
        return is_enough and (self._batches_with_rows >= SETTLING or self._new_work > MOST_OVERRUN * self._old_work)

    @property
    def work(self) -> TrialWork | None:
        return TrialWork(self._old_work / self._rows, self._new_work / self._rows) if self._rows else None

    @property
    def _has_failed(self) -> bool:
        return self._new_work > self._old_work

    @property
    def failed(self) -> tuple[str, ...]:
        """No head has an order of its own to be taken back."""
        return ()

    @property
    def kept_plan(self) -> Plan:
        return self._change.before if self._has_failed else self._change.after

    def failures(self, snapshot: Snapshot) -> list[Failed]:
        """The new tree, if it was taken back."""
        if not self._has_failed:
            return []
        measured = self._new_work / self._old_work if self._old_work else None
        return [Failed(tree_order(self._change.after), estimated_share(self._change, snapshot), measured)]

    @property
    def successes(self) -> list[Order]:
        return [] if self._has_failed else [tree_order(self._change.after)]
