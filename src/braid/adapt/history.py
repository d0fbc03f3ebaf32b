"""What has become of the plan: each change with its reason, and what it was expected to bring and brings."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from statistics import fmean

from braid.model.plan import Plan, Written

SETTLING = 3
"""A change is judged after so many batches under the new plan, or when all figures are known if that is later."""


@dataclass(frozen=True)
class RecordedChange:
    """One change of plan. Gains are shares of the work saved: None where nobody predicted, or nobody can tell yet.

    The measured gain is by how much the probes and matches for each row fell, from the last batches before the change
    to the first after it. Those are different rows: what made the change worth while, a burst for instance, often makes
    more work. So the confirmed gain compares the same two plans once more, under what was seen until then.
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
    """Changes in order, the last of which may have to be judged yet."""

    def __init__(self) -> None:
        self._changes: list[RecordedChange] = []
        self._earlier: deque[float] = deque(maxlen=SETTLING)
        self._since: deque[float] = deque(maxlen=SETTLING)

    @property
    def changes(self) -> tuple[RecordedChange, ...]:
        return tuple(self._changes)

    def record(self, batch: int, time: float, reason: str, before: Plan, after: Plan, predicted: float | None) -> None:
        """The plan changes after this batch."""
        self._changes.append(RecordedChange(batch, time, reason, before.written, after.written, predicted))
        if self._since:
            self._earlier, self._since = self._since, deque(maxlen=SETTLING)

    def count(self, work: float, arrived: bool) -> None:
        """A batch took so much work for each row, under the plan recorded last if that has arrived."""
        (self._since if arrived else self._earlier).append(work)

    def settled(self) -> RecordedChange | None:
        """The change to the plan recorded last, if it is time to judge it and nobody has."""
        if not self._changes or len(self._since) < SETTLING or self._changes[-1].confirmed is not None:
            return None
        return self._changes[-1]

    def confirm(self, gain: float) -> None:
        """What the last change saves by all that is known; what was measured is known here."""
        before = fmean(self._earlier) if self._earlier else 0.0
        measured = 1 - fmean(self._since) / before if before else None
        self._changes[-1] = replace(self._changes[-1], confirmed=gain, measured=measured)
