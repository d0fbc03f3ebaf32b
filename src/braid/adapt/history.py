"""The history of a plan: each change with its reason, its predicted and its measured work, and the verdict on it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from math import inf
from statistics import fmean
from typing import Literal

from braid.model.plan import Plan, Written

SETTLING = 3
"""The batches under a new plan that are compared with as many before it, where there is no trial."""

Verdict = Literal["trial", "kept", "taken back", "not judged", "asked for", "resumed"]


@dataclass(frozen=True)
class RecordedChange:
    """One change of plan, and what became of it: on trial, kept or taken back; asked for by the user; resumed, if the
    checkpoint has another plan than the query was declared with. A trial that ended before any row could show what
    the plans cost is not judged.

    Work is in probes and candidates for each new row; None if it is not known. A trial of orders compares the old and
    the new order on the same rows, of streams whose order changes; `taken_back` are those of them whose new order was
    not kept. A trial of trees compares the work of all rows with what the old tree would have taken. Without a trial,
    the work after the change is compared with that before it, of all rows.
    """

    batch: int
    time: float
    reason: str
    before: Written
    after: Written
    verdict: Verdict
    predicted: float | None = None
    """The share of the work that the change was expected to save at least."""
    work_before: float | None = None
    work_measured: float | None = None
    taken_back: tuple[str, ...] = ()

    @property
    def work_predicted(self) -> float | None:
        """The work that the prediction leaves of that before the change."""
        return None if self.predicted is None or self.work_before is None else (1 - self.predicted) * self.work_before

    @property
    def measured(self) -> float | None:
        """The share of the work that the change has saved."""
        if self.work_measured is None or self.work_before is None:
            return None
        if not self.work_before:
            return 0.0 if not self.work_measured else -inf
        return 1 - self.work_measured / self.work_before


class History:
    """The changes in order; the last one may still have to be judged."""

    def __init__(self) -> None:
        self._changes: list[RecordedChange] = []
        # The work per row of the last batches before the last change, and since it.
        self._earlier: deque[float] = deque(maxlen=SETTLING)
        self._since: deque[float] = deque(maxlen=SETTLING)

    @property
    def changes(self) -> tuple[RecordedChange, ...]:
        return tuple(self._changes)

    def record(self, change: RecordedChange) -> None:
        """Record that the plan changes after this batch."""
        self._changes.append(change)
        if self._since:
            self._earlier, self._since = self._since, deque(maxlen=SETTLING)

    def count(self, work: float, arrived: bool) -> None:
        """Count the work per row of a batch; `arrived` says whether it ran under the plan recorded last."""
        (self._since if arrived else self._earlier).append(work)

    @property
    def settled(self) -> bool:
        """Whether enough batches have run since the last change to compare them with those before it."""
        return len(self._since) == SETTLING

    def measure_trial(self, before: float, measured: float) -> None:
        """Note what both plans of the last change have cost so far, for each row."""
        self._changes[-1] = replace(self._changes[-1], work_before=before, work_measured=measured)

    def measure_batches(self) -> None:
        """Note the work of the batches before the last change and since it, once, when enough have run."""
        if self._changes and self._changes[-1].work_measured is None and self.settled and self._earlier:
            before, measured = fmean(self._earlier), fmean(self._since)
            self._changes[-1] = replace(self._changes[-1], work_before=before, work_measured=measured)

    def judge(self, verdict: Verdict, after: Plan, taken_back: tuple[str, ...] = ()) -> None:
        """Set the verdict on the last change; `after` is the plan that was kept."""
        self._changes[-1] = replace(self._changes[-1], verdict=verdict, after=after.written, taken_back=taken_back)
