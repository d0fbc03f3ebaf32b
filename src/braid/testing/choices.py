"""Random decisions for generators: from a seed (fast), or from Hypothesis (finds small counterexamples)."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

Item = TypeVar("Item")


class Choices(ABC):
    """Random decisions. Low integers and early items are the simple ones: Hypothesis shrinks towards them."""

    @abstractmethod
    def integer(self, low: int, high: int) -> int:
        """An integer from `low` to `high`, both included."""

    def pick(self, items: Sequence[Item]) -> Item:
        return items[self.integer(0, len(items) - 1)]

    def once_in(self, count: int) -> bool:
        """True with a probability of one in `count`."""
        return self.integer(0, count - 1) == count - 1

    def shuffle(self, items: Sequence[Item]) -> list[Item]:
        """The items in random order; the given order is the simplest."""
        rest = list(items)
        return [rest.pop(self.integer(0, len(rest) - 1)) for _ in items]


class SeededChoices(Choices):
    """Decisions from a seed: the same seed makes the same decisions."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        return low + int(self._random.random() * (high - low + 1))


class DrawnChoices(Choices):
    """Decisions that Hypothesis draws, records and shrinks."""

    def __init__(self, draw: Draw) -> None:
        from hypothesis import strategies

        self._draw = draw
        self._integers: Callable[[int, int], Any] = strategies.integers

    def integer(self, low: int, high: int) -> int:
        drawn = self._draw(self._integers(low, high))
        assert isinstance(drawn, int)
        return drawn


class Draw(Protocol):
    """The function `draw` that Hypothesis passes to a composite strategy."""

    def __call__(self, strategy: Any, /) -> Any: ...
