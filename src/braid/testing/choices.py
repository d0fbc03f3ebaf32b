"""Where generators take their decisions from: a seed, for speed, or Hypothesis, for small counterexamples."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

Item = TypeVar("Item")


class Choices(ABC):
    """Decides. What comes first counts as simpler: shrinking a case moves every decision towards it."""

    @abstractmethod
    def integer(self, low: int, high: int) -> int:
        """A number from `low` to `high`, both included."""

    def pick(self, items: Sequence[Item]) -> Item:
        return items[self.integer(0, len(items) - 1)]

    def once_in(self, count: int) -> bool:
        """True once in `count` times."""
        return self.integer(0, count - 1) == count - 1

    def shuffle(self, items: Sequence[Item]) -> list[Item]:
        """The items in any order; the given one is the simplest."""
        rest = list(items)
        return [rest.pop(self.integer(0, len(rest) - 1)) for _ in items]


class SeededChoices(Choices):
    """The same decisions each time for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        return low + int(self._random.random() * (high - low + 1))


class DrawnChoices(Choices):
    """Decisions that Hypothesis draws, records and simplifies."""

    def __init__(self, draw: Draw) -> None:
        from hypothesis import strategies

        self._draw = draw
        self._integers: Callable[[int, int], Any] = strategies.integers

    def integer(self, low: int, high: int) -> int:
        number = self._draw(self._integers(low, high))
        assert isinstance(number, int)
        return number


class Draw(Protocol):
    """What Hypothesis hands to a composite strategy."""

    def __call__(self, strategy: Any, /) -> Any: ...
