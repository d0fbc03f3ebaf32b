"""How numbers are spread: a few quantiles of a stream of numbers, which can be merged and never depend on chance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MOST = 128
"""The most numbers that are kept: a share between two of them is off by about 1%, and more after many merges."""


class Quantiles:
    """Numbers in order, each of which stands for as many of the numbers that were added as any other."""

    def __init__(self, numbers: Floats | None = None, weight: float = 0.0) -> None:
        self.numbers = np.empty(0) if numbers is None else numbers
        self.weight = weight
        """How many numbers were added."""

    def add(self, numbers: Floats, weight: float) -> None:
        """Add numbers that stand for `weight` of them."""
        self.merge(Quantiles(np.sort(numbers), weight))

    def merge(self, other: Quantiles) -> None:
        """Add the numbers of another stream."""
        if not len(other.numbers):
            return
        numbers = np.concatenate([self.numbers, other.numbers])
        weights = np.concatenate([_weights(self), _weights(other)])
        order = np.argsort(numbers, kind="stable")
        numbers, before = numbers[order], np.cumsum(weights[order])
        self.weight += other.weight
        if len(numbers) > MOST:
            # The number in the middle of each of so many equal stretches.
            middles = (np.arange(MOST) + 0.5) * before[-1] / MOST
            numbers = numbers[np.minimum(np.searchsorted(before, middles), len(numbers) - 1)]
        self.numbers = numbers

    def share_below(self, limits: Floats) -> Floats:
        """The share of numbers below each limit."""
        below: Floats = np.searchsorted(self.numbers, limits) / max(1, len(self.numbers))
        return below


def _weights(quantiles: Quantiles) -> Floats:
    return np.full(len(quantiles.numbers), quantiles.weight / max(1, len(quantiles.numbers)))
