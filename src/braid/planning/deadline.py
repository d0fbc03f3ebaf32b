"""How long planning may take."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from braid.errors import DeadlineError, PlanningError
from braid.model.checks import is_figure


@dataclass(frozen=True)
class Deadline:
    """How long a planner may take, by a clock that is read wherever the planner asks.

    Whatever may take long asks again and again: nothing longer than one call of a library happens in between.
    """

    planner: str = ""
    seconds: float | None = None
    clock: Callable[[], float] = time.perf_counter
    started: float = 0.0

    @classmethod
    def of(cls, planner: str, seconds: float | None, clock: Callable[[], float] = time.perf_counter) -> Deadline:
        if seconds is not None and not is_figure(seconds):
            raise PlanningError(f"a deadline is in seconds, 0 or more, not {seconds!r:.80}")
        return cls(planner, seconds, clock, clock())

    def check(self) -> None:
        """Raise an error once the time is over."""
        if self.seconds is not None and self.clock() - self.started > self.seconds:
            raise DeadlineError(
                f"planner '{self.planner}' did not finish within {self.seconds:g} s; "
                "give it more time, or choose a faster one such as 'stream_join_opt' or 'greedy'"
            )


NO_DEADLINE = Deadline()
