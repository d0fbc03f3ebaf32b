"""What has become of the plan: each change with its reason, and what it was expected to bring and brings."""

from __future__ import annotations

from dataclasses import dataclass, replace

from braid.model.plan import Plan, Written

SETTLING = 3
"""A change is judged after so many batches under the new plan, or when all figures are known if that is later."""


@dataclass(frozen=True)
class Change:
    """One change of plan. Gains are shares of the work saved: None where nobody predicted, or nobody can tell yet.

    The confirmed gain compares the same two plans once more, under what was seen until a few batches after the change.
    Work before and after would not tell: what made the change worth while, a burst for instance, often makes more work.
    """

    batch: int
    time: float
    reason: str
    before: Written
    after: Written
    predicted: float | None = None
    confirmed: float | None = None


class History:
    """Changes in order, the last of which may have to be judged yet."""

    def __init__(self) -> None:
        self._changes: list[Change] = []
        self._batches = 0

    @property
    def changes(self) -> tuple[Change, ...]:
        return tuple(self._changes)

    def record(self, batch: int, time: float, reason: str, before: Plan, after: Plan, predicted: float | None) -> None:
        """The plan changes after this batch."""
        self._changes.append(Change(batch, time, reason, before.written, after.written, predicted))
        self._batches = 0

    def settled(self) -> Change | None:
        """Count a batch under the plan recorded last; the change to it, if it is time to judge it and nobody has."""
        self._batches += 1
        if not self._changes or self._batches < SETTLING or self._changes[-1].confirmed is not None:
            return None
        return self._changes[-1]

    def confirm(self, gain: float) -> None:
        """What the last change saves."""
        self._changes[-1] = replace(self._changes[-1], confirmed=gain)
