"""Streams that have been silent for too long: how far they are taken to have come, so that they hold nobody back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from braid.errors import StreamError
from braid.model.duration import Duration, microseconds
from braid.model.window import FOREVER


def idle_seconds(timeout: Duration) -> float:
    """For how long a stream may be silent, as people write it."""
    seconds = microseconds("idle_timeout", timeout) / 1e6
    if seconds <= 0:
        raise StreamError(f"idle_timeout is {seconds:g} seconds, by which all are silent at all times; give more")
    return seconds


@dataclass(frozen=True)
class Heard:
    """Of one stream, after a micro-batch: whether it brought anything, and its watermark."""

    anything: bool
    watermark: int


class IdleTracker:
    """Adds up for how long each stream of a run has brought nothing, by the times at which micro-batches started.

    Of the time between two of them no more than half of what is too long counts: while a query does not run, nobody
    knows who is silent, and what has piled up may come of one stream before it comes of another.
    """

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._silent: dict[str, float] = {}
        self._last: float | None = None
        self._told: dict[str, int] = {}

    def passed(self, heard: Mapping[str, Heard], now: float) -> dict[str, int]:
        """The watermarks of those who have been silent for too long, where nobody has been told of them yet."""
        gap = 0.0 if self._last is None else max(0.0, min(now - self._last, self._timeout / 2))
        self._last = now
        for stream, part in heard.items():
            self._silent[stream] = 0.0 if part.anything else self._silent.get(stream, 0.0) + gap
        busy = [part.watermark for stream, part in heard.items() if self._silent[stream] < self._timeout]
        slowest = min(busy, default=-FOREVER)
        news = {
            stream: slowest
            for stream, part in heard.items()
            if self._silent[stream] >= self._timeout and slowest > self._told.get(stream, -FOREVER)
        }
        self._told |= news
        return news
