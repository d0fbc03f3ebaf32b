"""Rates of a channel and of the work of a site, per second of event time, from their totals."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from braid.model.window import FOREVER

SECOND = 1_000_000


class ChannelReading(NamedTuple):
    """The totals of a channel when its watermark was at some event time."""

    watermark: int
    batches: int
    rows: int
    bytes: int


class Meter:
    """Measures a channel over its last `seconds` of event time."""

    def __init__(self, seconds: float) -> None:
        self._span = int(seconds * SECOND)
        self._readings: deque[ChannelReading] = deque()

    def read(self, reading: ChannelReading) -> None:
        """Take in the totals of the channel as they are now. After a stream has ended, nothing is read any more."""
        if abs(reading.watermark) >= FOREVER:
            return
        readings = self._readings
        if readings and reading.watermark <= readings[-1].watermark:
            return  # No event time has passed. The rows count with the next reading.
        readings.append(reading)
        while len(readings) > 2 and readings[1].watermark <= reading.watermark - self._span:
            readings.popleft()

    @property
    def reached(self) -> int:
        """The event time of the last reading."""
        return self._readings[-1].watermark if self._readings else -FOREVER

    @property
    def seconds(self) -> float:
        """The seconds of event time that the figures are about."""
        return (self._readings[-1].watermark - self._readings[0].watermark) / SECOND if self._readings else 0.0

    @property
    def rows_so_far(self) -> float:
        """How many rows the channel had carried, on average over the time that the figures are about."""
        return (self._readings[0].rows + self._readings[-1].rows) / 2 if self._readings else 0.0

    @property
    def rate(self) -> float | None:
        """Rows per second of event time; None before some event time has passed."""
        return self._per_second("rows")

    @property
    def batches(self) -> float | None:
        """Batches per second of event time, including those without rows."""
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


class LoadMeter:
    """Measures the seconds of work per second of event time, over the last `seconds` of event time."""

    def __init__(self, seconds: float) -> None:
        self._span = int(seconds * SECOND)
        self._worked = 0.0
        self._readings: deque[tuple[int, float]] = deque()
        """Event times, and the seconds of work until then."""

    def work(self, seconds: float) -> None:
        self._worked += seconds

    def read(self, reached: int) -> None:
        """Event time has come so far."""
        readings = self._readings
        if abs(reached) < FOREVER and not (readings and reached <= readings[-1][0]):
            readings.append((reached, self._worked))
            while len(readings) > 2 and readings[1][0] <= reached - self._span:
                readings.popleft()

    @property
    def load(self) -> float | None:
        """Seconds of work per second of event time; None before some event time has passed, or without any work."""
        if len(self._readings) < 2 or not self._worked:
            return None
        (began, before), (reached, worked) = self._readings[0], self._readings[-1]
        return (worked - before) * SECOND / (reached - began)
