"""TUMBLE and HOP as functions over a stream: they add the bounds of the windows that a row is in as two columns."""

from __future__ import annotations

from dataclasses import dataclass

from braid.errors import ModelError
from braid.model.checks import check, check_name
from braid.model.window import LONGEST, Tumble, Until, Window

WINDOW_START = "window_start"
WINDOW_END = "window_end"
"""The columns that a window function adds: the first moment of a window, and the first one after it."""


@dataclass(frozen=True, slots=True)
class WindowFunction:
    """Windows of `size` microseconds that begin at each multiple of `slide`.

    The event times are in the column `time`; None is that of the stream, whichever it is, as `[HOP ..]` means.
    A row becomes one row for each window that it is in. Each of these is alive from the event time to the end of its
    window. If windows do not overlap (`slide` is `size`), that is the meaning of `[TUMBLE ..]`.
    """

    time: str | None
    size: int
    slide: int

    def __post_init__(self) -> None:
        if self.time is not None:
            check_name(self.time, "the time column of a window function")
        check(self.size, int, "the size of a window")
        check(self.slide, int, "the slide of a window")
        if not 0 < self.slide <= self.size <= LONGEST:
            raise ModelError(f"windows of {self.size} microseconds every {self.slide} microseconds leave rows out")

    @property
    def window(self) -> Window:
        """How long the rows that the function gives are alive."""
        return Tumble(self.size) if self.slide == self.size else Until(WINDOW_END)
