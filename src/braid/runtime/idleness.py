"""Idle streams: when a stream has brought nothing for too long, and which watermark it then gets."""

from __future__ import annotations

from collections.abc import Mapping

from braid.errors import StreamError
from braid.model.duration import Duration, microseconds
from braid.model.window import FOREVER
from braid.runtime.report import StreamProgress


def idle_seconds(timeout: Duration) -> float:
    """The value of `idle_timeout` in seconds."""
    seconds = microseconds("idle_timeout", timeout) / 1e6
    if seconds <= 0:
        raise StreamError(f"idle_timeout is {seconds:g} seconds; it must be greater than 0")
    return seconds


class IdleTracker:
    """Adds up how long each stream of a run has brought nothing, from the start times of its micro-batches.

    Each gap between micro-batches counts for at most half the timeout. A long gap says little: while a query is
    stopped no stream can bring anything, and after a restart the backlog of one stream may arrive before another's.
    """

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._idle: dict[str, float] = {}
        """Seconds since each stream last brought anything."""
        self._last_start: float | None = None
        self._passed_to: dict[str, int] = {}
        """The last watermark returned for each stream."""

    def update(self, progress: Mapping[str, StreamProgress], started: float) -> dict[str, int]:
        """Take in a micro-batch; returns the idle streams that can move on, each with its new watermark.

        The watermark of an idle stream moves up to that of the slowest stream that is not idle.
        """
        gap = 0.0 if self._last_start is None else max(0.0, min(started - self._last_start, self._timeout / 2))
        self._last_start = started
        for stream, stream_progress in progress.items():
            self._idle[stream] = 0.0 if stream_progress.active else self._idle.get(stream, 0.0) + gap
        idle = [stream for stream in progress if self._idle[stream] >= self._timeout]
        others = [stream_progress.watermark for stream, stream_progress in progress.items() if stream not in idle]
        slowest = min(others, default=-FOREVER)
        moved = {stream: slowest for stream in idle if slowest > self._passed_to.get(stream, -FOREVER)}
        self._passed_to |= moved
        return moved
