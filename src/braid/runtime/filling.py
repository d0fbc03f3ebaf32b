"""How many more rows the next batch will see than the last one, while windows are still filling."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

MOMENTS = 32
"""The moments of a batch at which windows are looked at."""


@dataclass(frozen=True, slots=True)
class Filling:
    """The time of a batch, from `begin` to `end`, of a stream whose rows began at `first`; all in event time.

    Rows are taken to come evenly, and the next batch to be as long as this one.
    """

    first: int
    begin: int
    end: int

    def growth(self, lives: int, length: int, sees_new: bool) -> float:
        """How many times as many rows a row sees in the next batch.

        The row lives for `lives`, and the rows that it sees for `length`. It sees new rows, or only those from before
        the batch.
        """
        now, later = (self._seen(begin, lives, length, sees_new) for begin in (self.begin, self.end))
        return later / now if now else 1.0

    def _seen(self, begin: int, lives: int, length: int, sees_new: bool) -> float:
        """The mean length of the time whose rows are seen in a batch that begins at this time."""
        duration = self.end - self.begin
        moments = begin + duration * (np.arange(MOMENTS) + 0.5) / MOMENTS
        latest = np.minimum(begin + duration if sees_new else begin, moments + lives)
        earliest = np.maximum(self.first, moments - length)
        return float(np.maximum(0.0, latest - earliest).mean())
