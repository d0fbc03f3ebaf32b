"""Rates by value, from histograms of single values and of ranges."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def value_rates(histograms: Sequence[Mapping[Hashable, float]]) -> tuple[tuple[Hashable, ...], Floats]:
    """All values that occur, in order, and for each stream (rows) the rate of each value (columns).

    A key that is a pair of whole numbers is a range; its rate is spread evenly over it.

    >>> value_rates([{1: 4.0, 2: 2.0}, {(1, 4): 2.0}])
    ((1, 2, 3, 4), array([[4. , 2. , 0. , 0. ],
           [0.5, 0.5, 0.5, 0.5]]))
    """
    spread = [_spread(histogram) for histogram in histograms]
    found = {value for rates in spread for value in rates}
    values = tuple(sorted(found, key=_order))
    return values, np.array([[rates.get(value, 0.0) for value in values] for rates in spread])


def _spread(histogram: Mapping[Hashable, float]) -> dict[Hashable, float]:
    rates: dict[Hashable, float] = {}
    for key, rate in histogram.items():
        if isinstance(key, tuple) and len(key) == 2 and all(isinstance(end, int) for end in key):
            first, last = key
            for value in range(first, last + 1):
                rates[value] = rates.get(value, 0.0) + rate / (last + 1 - first)
        else:
            rates[key] = rates.get(key, 0.0) + rate
    return rates


def _order(value: Hashable) -> tuple[str, object]:
    """Numbers in their order, and then everything else by its text."""
    return ("", value) if isinstance(value, int | float) else (type(value).__name__, str(value))
