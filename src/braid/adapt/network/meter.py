"""How much a channel carries, from what it has carried in all."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from braid.model.window import FOREVER

SECOND = 1_000_000


class Reading(NamedTuple):
    """What a channel had carried in all when its event time had come to a watermark."""

    watermark: int
    batches: int
    rows: int
    bytes: int


class Meter:
    """The rows and bytes of a channel per second of event time, over its last `seconds`."""

    def __init__(self, seconds: float) -> None:
        self._span = int(seconds * SECOND)
        self._readings: deque[Reading] = deque()

    def read(self, reading: Reading) -> None:
        """Take in what the channel has carried by now. A stream that has ended has no rate any more."""
        if abs(reading.watermark) >= FOREVER:
            return
        readings = self._readings
        if readings and reading.watermark <= readings[-1].watermark:
            return  # No event time has passed: the rows count when some has.
        readings.append(reading)
        while len(readings) > 2 and readings[1].watermark <= reading.watermark - self._span:
            readings.popleft()

    @property
    def reached(self) -> int:
        """The event time of the last reading."""
        return self._readings[-1].watermark if self._readings else -FOREVER

    @property
    def rate(self) -> float | None:
        """Rows per second of event time; None before some event time has passed."""
        return self._per_second("rows")

    @property
    def batches(self) -> float | None:
        """Batches per second of event time, also those without rows."""
        return self._per_second("batches")

    def _per_second(self, name: str) -> float | None:
        if len(self._readings) < 2:
            return None
        first, last = self._readings[0], self._readings[-1]
        carried = getattr(last, name) - getattr(first, name)
        return float(carried * SECOND / (last.watermark - first.watermark))

    @property
    def size(self) -> float | None:
        """Bytes per row; None without rows."""
        if not self._readings:
            return None
        first, last = self._readings[0], self._readings[-1]
        rows = last.rows - first.rows
        return (last.bytes - first.bytes) / rows if rows else None
