"""When a site of a new plan is ready to take over."""

from __future__ import annotations

from collections.abc import Callable

from braid.model.window import FOREVER


class Readiness:
    """Lets a site catch up before it counts as ready.

    The first step of a site that starts is slow: a host plans it, processes start, and windows fill. Meanwhile its
    streams go on. So when the site has come to the level of a change, it first goes on to where its streams have
    arrived by then. Otherwise the first results of the new plan would come late. A site that is started again after a
    crash catches up again.

    >>> readiness = Readiness()
    >>> readiness.reached(5, level=3, arrived=lambda: 9) == -FOREVER, readiness.reached(9, level=3, arrived=lambda: 12)
    (True, 9)
    """

    def __init__(self) -> None:
        self._target: int | None = None

    def reached(self, reached: int, level: int, arrived: Callable[[], int]) -> int:
        """How far the site counts to have come: nowhere, as long as it has to catch up."""
        if self._target is None and reached >= level:
            self._target = arrived()
        return reached if self._target is not None and reached >= self._target else -FOREVER
