"""Rates by value, from histograms of single values and of ranges."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from braid.errors import PlanningError

Floats = NDArray[np.float64]

MOST_VALUES = 10_000_000
"""Each value of a range has a rate of its own."""


def value_rates(histograms: Sequence[Mapping[Hashable, float]]) -> tuple[tuple[Hashable, ...], Floats]:
    """All values that occur, in order, and for each stream (rows) the rate of each value (columns).

    A key that is a pair of whole numbers is a range; its rate is spread evenly over it.

    >>> value_rates([{1: 4.0, 2: 2.0}, {(1, 4): 2.0}])
    ((1, 2, 3, 4), array([[4. , 2. , 0. , 0. ],
           [0.5, 0.5, 0.5, 0.5]]))
    """
    count = sum(_width(key) for histogram in histograms for key in histogram)
    if count > MOST_VALUES:
        raise PlanningError(
            f"histograms of {count:,} values are too large to work with; the limit is {MOST_VALUES:,}: "
            "leave them out, and give selectivities"
        )
    spread = [_spread(histogram) for histogram in histograms]
    found = {value for rates in spread for value in rates}
    values = tuple(sorted(found, key=_order))
    return values, np.array([[rates.get(value, 0.0) for value in values] for rates in spread])


def _spread(histogram: Mapping[Hashable, float]) -> dict[Hashable, float]:
    rates: dict[Hashable, float] = {}
    for key, rate in histogram.items():
        values: Iterable[Hashable] = range(key[0], key[1] + 1) if _is_range(key) else (key,)
        for value in values:
            rates[value] = rates.get(value, 0.0) + rate / _width(key)
    return rates


def _is_range(key: Hashable) -> TypeGuard[tuple[int, int]]:
    return isinstance(key, tuple) and len(key) == 2 and all(isinstance(end, int) for end in key)


def _width(key: Hashable) -> int:
    """How many values a key of a histogram stands for."""
    if not _is_range(key):
        return 1
    if key[0] > key[1]:
        raise PlanningError(f"the range {key} of a histogram ends before it begins; give (first, last)")
    return key[1] + 1 - key[0]


def _order(value: Hashable) -> tuple[str, object]:
    """Numbers in their order, and then everything else by its text."""
    return ("", value) if isinstance(value, int | float) else (type(value).__name__, str(value))
