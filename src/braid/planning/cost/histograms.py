"""Rates by value, from histograms of single values and of ranges.

A range is cut only where another histogram has different rates within it, or where the caller asks for pieces. So the
work depends on the number of histogram entries, and not on the number of values in their ranges.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import floor, isfinite, nan
from numbers import Integral, Number
from typing import NamedTuple, TypeGuard

import numpy as np
from numpy.typing import NDArray

from braid.model.statistics import Others

Floats = NDArray[np.float64]


class ValueRates(NamedTuple):
    """All values that occur, in order; whole numbers with the same rates are one range (first, last).

    `counts` has the number of values in each entry of `values`. `rates` has a row for each stream and a column for each
    entry: the rate of one single value of that entry.
    """

    values: tuple[Hashable, ...]
    counts: Floats
    rates: Floats


def value_rates(histograms: Sequence[Mapping[Hashable, float]], pieces: int = 1) -> ValueRates:
    """The rates of several streams, value by value.

    A histogram key that is a pair of whole numbers is a range, and its rate is spread evenly over the range. A range is
    cut where another range or value begins or ends, and into `pieces`, so that callers can divide it. Nulls are left
    out, because null equals no value.

    >>> by_value = value_rates([{1: 4.0, 2: 2.0}, {(1, 6): 3.0}])
    >>> by_value.values, by_value.counts.tolist()
    ((1, 2, (3, 6)), [1.0, 1.0, 4.0])
    >>> by_value.rates
    array([[4. , 2. , 0. ],
           [0.5, 0.5, 0.5]])
    """
    histograms = [{key: rate for key, rate in histogram.items() if key is not None} for histogram in histograms]
    cuts = sorted(_cuts(histograms, pieces))
    spread = [_spread(histogram, cuts) for histogram in histograms]
    values = in_order({value for rates in spread for value in rates})
    counts = np.array([width(value) for value in values], np.float64)
    rates = np.array([[rates.get(value, 0.0) for value in values] for rates in spread], np.float64)
    return ValueRates(values, counts, rates)


def _cuts(histograms: Sequence[Mapping[Hashable, float]], pieces: int) -> set[int]:
    """The whole numbers at which ranges are cut: a new range begins at each of them."""
    cuts: set[int] = set()
    for key in (key for histogram in histograms for key in histogram):
        if is_range(key):
            cuts.update(key[0] + width(key) * piece // pieces for piece in range(pieces + 1))
        elif isinstance(key, Number) and isfinite(key):  # type: ignore[arg-type]
            cuts.update((floor(key), floor(key) + 1))  # type: ignore[call-overload]
    return cuts


def _spread(histogram: Mapping[Hashable, float], cuts: Sequence[int]) -> dict[Hashable, float]:
    """The rate of one single value of each key, where ranges are cut."""
    rates: dict[Hashable, float] = {}
    for key, rate in histogram.items():
        for value in _pieces(key, cuts):
            rates[value] = rates.get(value, 0.0) + rate / width(key)
    return rates


def _pieces(key: Hashable, cuts: Sequence[int]) -> Iterator[Hashable]:
    if is_range(key):
        starts = (*cuts[bisect_left(cuts, key[0]) : bisect_right(cuts, key[1])], key[1] + 1)
        for first, following in pairwise(starts):
            yield first if following == first + 1 else (first, following - 1)
    else:
        # NaN has many bit patterns and types; all of them are one value.
        yield nan if is_nan(key) else key


def is_range(key: Hashable) -> TypeGuard[tuple[int, int]]:
    """Whether a histogram key is a range of whole numbers (first, last)."""
    return isinstance(key, tuple) and len(key) == 2 and all(isinstance(end, Integral) for end in key)


def is_nan(value: Hashable) -> bool:
    return isinstance(value, Number) and value != value


def width(key: Hashable) -> int:
    """The number of values in a histogram key."""
    if isinstance(key, Others):
        return key.count
    return int(key[1]) + 1 - int(key[0]) if is_range(key) else 1


def in_order(values: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """Values and ranges of histograms, sorted."""
    return tuple(sorted(values, key=_order))


def _order(value: Hashable) -> tuple[str, bool, object]:
    """The sort key of values: numbers in order with NaN last, then all other values by type and text."""
    if is_range(value):
        return "", False, value[0]
    if isinstance(value, Number):
        return "", is_nan(value), 0 if is_nan(value) else value
    return type(value).__name__, False, str(value)
