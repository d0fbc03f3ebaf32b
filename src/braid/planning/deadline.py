"""The time limit of a planner."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from braid.errors import DeadlineError, PlanningError
from braid.model.checks import is_figure


@dataclass(frozen=True)
class Deadline:
    """How long a planner may take, in seconds on a clock that is read at each `check`.

    Long computations call `check` often: at most one call into a library lies between two checks.
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
        """Raise a `DeadlineError` if the time is up."""
        if self.seconds is not None and self.clock() - self.started > self.seconds:
            raise DeadlineError(
                f"planner '{self.planner}' did not finish within {self.seconds:g} s; "
                "give it more time, or choose a faster one such as 'stream_join_opt' or 'greedy'"
            )


NO_DEADLINE = Deadline()
