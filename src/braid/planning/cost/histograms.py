"""Rates by value, from histograms of single values and of ranges.

Values of a range are alike to everybody who has no histogram that tells them apart, so that a range stays whole as far
as it can: how many values there are makes no difference.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import floor, isfinite, nan
from numbers import Integral, Number
from typing import NamedTuple, TypeGuard

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class ValueRates(NamedTuple):
    """All values that occur, in order, where values that are alike are one range (first, last) of whole numbers.

    `counts` says how many values each of them stands for, and `rates` has for each stream (rows) the rate of every
    single value of each (columns).
    """

    values: tuple[Hashable, ...]
    counts: Floats
    rates: Floats


def value_rates(histograms: Sequence[Mapping[Hashable, float]], pieces: int = 1) -> ValueRates:
    """The rates of several streams, value by value.

    A key of a histogram that is a pair of whole numbers is a range; its rate is spread evenly over it. It is cut where
    another one begins or ends, and into `pieces`, for those who want to divide it. Null is no value: it equals nothing.

    >>> found = value_rates([{1: 4.0, 2: 2.0}, {(1, 6): 3.0}])
    >>> found.values, found.counts.tolist()
    ((1, 2, (3, 6)), [1.0, 1.0, 4.0])
    >>> found.rates
    array([[4. , 2. , 0. ],
           [0.5, 0.5, 0.5]])
    """
    histograms = [{key: rate for key, rate in given.items() if key is not None} for given in histograms]
    cuts = sorted(_cuts(histograms, pieces))
    spread = [_spread(histogram, cuts) for histogram in histograms]
    values = tuple(sorted({value for rates in spread for value in rates}, key=_order))
    counts = np.array([width(value) for value in values], np.float64)
    rates = np.array([[rates.get(value, 0.0) for value in values] for rates in spread], np.float64)
    return ValueRates(values, counts, rates)


def _cuts(histograms: Sequence[Mapping[Hashable, float]], pieces: int) -> set[int]:
    """The whole numbers before which a range that has them is cut."""
    cuts: set[int] = set()
    for key in (key for histogram in histograms for key in histogram):
        if is_range(key):
            cuts.update(key[0] + width(key) * number // pieces for number in range(pieces + 1))
        elif isinstance(key, Number) and isfinite(key):  # type: ignore[arg-type]
            cuts.update((floor(key), floor(key) + 1))  # type: ignore[call-overload]
    return cuts


def _spread(histogram: Mapping[Hashable, float], cuts: Sequence[int]) -> dict[Hashable, float]:
    rates: dict[Hashable, float] = {}
    for key, rate in histogram.items():
        for value in _pieces(key, cuts):
            rates[value] = rates.get(value, 0.0) + rate / width(key)
    return rates


def _pieces(key: Hashable, cuts: Sequence[int]) -> Iterator[Hashable]:
    if is_range(key):
        ends = (*cuts[bisect_left(cuts, key[0]) : bisect_right(cuts, key[1])], key[1] + 1)
        yield from (first if following == first + 1 else (first, following - 1) for first, following in pairwise(ends))
    else:
        # There are many numbers that are none, and to everybody else they are the same.
        yield nan if is_nan(key) else key


def is_range(key: Hashable) -> TypeGuard[tuple[int, int]]:
    """Whether a key of a histogram is a range of whole numbers, first and last."""
    return isinstance(key, tuple) and len(key) == 2 and all(isinstance(end, Integral) for end in key)


def is_nan(value: Hashable) -> bool:
    return isinstance(value, Number) and value != value


def width(key: Hashable) -> int:
    """How many values a key of a histogram stands for."""
    return int(key[1]) + 1 - int(key[0]) if is_range(key) else 1


def _order(value: Hashable) -> tuple[str, bool, object]:
    """Numbers in their order, NaN as the greatest of them, and then everything else by its text."""
    if is_range(value):
        return "", False, value[0]
    if isinstance(value, Number):
        return "", is_nan(value), 0 if is_nan(value) else value
    return type(value).__name__, False, str(value)
