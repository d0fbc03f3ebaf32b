"""The history of a plan: each change with its reason, its predicted gain and its actual gain."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from statistics import fmean

from braid.model.plan import Plan, Written

SETTLING = 3
"""The batches under a new plan after which its change is judged, or later if a figure is not known by then."""


@dataclass(frozen=True)
class RecordedChange:
    """One change of plan. Gains are shares of the work saved; None if there was no prediction, or not known yet.

    The measured gain is the decrease in probes and matches per row, from the last batches before the change to the
    first ones after it. These batches have different rows, and the cause of the change, such as a burst, often makes
    more work itself. So the confirmed gain compares the same two plans again, under the statistics known by then.
    """

    batch: int
    time: float
    reason: str
    before: Written
    after: Written
    predicted: float | None = None
    confirmed: float | None = None
    measured: float | None = None


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

    def record(self, batch: int, time: float, reason: str, before: Plan, after: Plan, predicted: float | None) -> None:
        """Record that the plan changes after this batch."""
        self._changes.append(RecordedChange(batch, time, reason, before.written, after.written, predicted))
        if self._since:
            self._earlier, self._since = self._since, deque(maxlen=SETTLING)

    def count(self, work: float, arrived: bool) -> None:
        """Count the work per row of a batch; `arrived` says whether it ran under the plan recorded last."""
        (self._since if arrived else self._earlier).append(work)

    def settled(self) -> RecordedChange | None:
        """The last change, if it is time to judge it and it has not been judged."""
        if not self._changes or len(self._since) < SETTLING or self._changes[-1].confirmed is not None:
            return None
        return self._changes[-1]

    def confirm(self, gain: float) -> None:
        """Set the confirmed gain of the last change, together with its measured gain."""
        before = fmean(self._earlier) if self._earlier else 0.0
        measured = 1 - fmean(self._since) / before if before else None
        self._changes[-1] = replace(self._changes[-1], confirmed=gain, measured=measured)
