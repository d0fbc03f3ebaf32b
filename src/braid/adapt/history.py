"""What has become of the plan: each change with its reason, and what it was expected to bring and brought."""

from __future__ import annotations

from dataclasses import dataclass, replace

from braid.model.plan import Plan, Written

SETTLING = 3
"""The work after a change is measured over so many batches."""


@dataclass(frozen=True)
class Change:
    """One change of plan. Gains are shares of the work saved, None where nobody predicted, or nothing is measured yet.

    The measured gain compares probes and matches for each row of the last batch before the change with those of
    the first batches after it.
    """

    batch: int
    time: float
    reason: str
    before: Written
    after: Written
    predicted: float | None = None
    measured: float | None = None


class History:
    """Changes in order, and the measuring of the last one."""

    def __init__(self) -> None:
        self._changes: list[Change] = []
        self._last: float | None = None
        self._base: float | None = None
        self._work = 0
        self._rows = 0
        self._batches = SETTLING

    @property
    def changes(self) -> tuple[Change, ...]:
        return tuple(self._changes)

    def record(self, batch: int, time: float, reason: str, before: Plan, after: Plan, predicted: float | None) -> None:
        """The plan changes after this batch."""
        self._changes.append(Change(batch, time, reason, before.written, after.written, predicted))
        self._base, self._work, self._rows, self._batches = self._last, 0, 0, 0

    def observe(self, work: int, rows: int, settled: bool = True) -> None:
        """What a batch took; `settled` once the plan that was last recorded is the one that runs."""
        if not rows:
            return
        self._last = work / rows
        if not settled or self._batches == SETTLING:
            return
        self._work, self._rows, self._batches = self._work + work, self._rows + rows, self._batches + 1
        if self._base:
            gain = 1 - self._work / self._rows / self._base
            self._changes[-1] = replace(self._changes[-1], measured=gain)
