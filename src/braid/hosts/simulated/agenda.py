"""Virtual time: what happens next, and when."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from itertools import count

from braid.errors import InvariantError

MOST_AT_ONCE = 100_000
"""If more things than this happen at one moment, they go round in a circle."""


class Agenda:
    """What is going to happen. What is due at the same moment happens in the order in which it was put there."""

    def __init__(self) -> None:
        self.now = 0.0
        self.step = 0
        """How many things have happened."""
        self._numbers = count()
        self._entries: list[tuple[float, int, Callable[[], None]]] = []

    def at(self, moment: float, happening: Callable[[], None]) -> None:
        """Have something happen at a moment, or now if that is past."""
        heapq.heappush(self._entries, (max(moment, self.now), next(self._numbers), happening))

    def __iter__(self) -> Iterator[Callable[[], None]]:
        """What happens, one after the other, until nothing is left."""
        at_once = 0
        while self._entries:
            moment, _, happening = heapq.heappop(self._entries)
            at_once = at_once + 1 if moment == self.now else 0
            if at_once > MOST_AT_ONCE:
                raise InvariantError(f"time stands still: {at_once:,} things have happened at one moment")
            self.now = moment
            self.step += 1
            yield happening
