"""A mergeable sketch of quantiles that never depends on chance: the same numbers always give the same sketch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MOST_NUMBERS = 128
"""A sketch keeps at most this many numbers. A share is off by about 1%, and by more after many merges."""


class Quantiles:
    """A sorted selection of the numbers that were added. Each of its numbers stands for the same share of them."""

    def __init__(self, numbers: Floats | None = None, weight: float = 0.0) -> None:
        self.numbers = np.empty(0) if numbers is None else numbers
        self.weight = weight
        """How many numbers were added."""

    def add(self, numbers: Floats, weight: float) -> None:
        """Add a sample that stands for `weight` numbers."""
        self.merge(Quantiles(np.sort(numbers), weight))

    def merge(self, other: Quantiles) -> None:
        """Add everything that another sketch has seen."""
        if not len(other.numbers):
            return
        numbers = np.concatenate([self.numbers, other.numbers])
        weights = np.concatenate([_weights(self), _weights(other)])
        order = np.argsort(numbers, kind="stable")
        numbers, cumulative = numbers[order], np.cumsum(weights[order])
        self.weight += other.weight
        if len(numbers) > MOST_NUMBERS:
            # Cut the weight into equal pieces, and keep the number in the middle of each.
            middles = (np.arange(MOST_NUMBERS) + 0.5) * cumulative[-1] / MOST_NUMBERS
            numbers = numbers[np.minimum(np.searchsorted(cumulative, middles), len(numbers) - 1)]
        self.numbers = numbers

    def share_below(self, limits: Floats) -> Floats:
        """The share of numbers below each limit."""
        below: Floats = np.searchsorted(self.numbers, limits) / max(1, len(self.numbers))
        return below


def _weights(quantiles: Quantiles) -> Floats:
    return np.full(len(quantiles.numbers), quantiles.weight / max(1, len(quantiles.numbers)))
