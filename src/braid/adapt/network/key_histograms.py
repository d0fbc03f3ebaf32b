"""Histograms of join keys, from the sketches that intakes make: what plans for each part of the keys are based on.

A histogram has the frequent keys one by one, and all others together. Frequent keys are what parts can be made of: of
keys that nobody has counted one by one, nothing is known that one plan for all of them would not be as good for.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from braid.adapt.cells import value_cells
from braid.adapt.observation import KeyColumn
from braid.adapt.sketch import KeySketch
from braid.model.expressions.expression import Column
from braid.model.graph import AttributeClass
from braid.model.query import Query
from braid.model.statistics import Others

LISTED_SHARE = 0.02
"""A key with at least this share of the rows of a stream is listed."""

MOST_LISTED = 32
"""At most this many keys are listed."""

Histograms = Mapping[str, Mapping[Hashable, float]]
"""The rows per second of each key, by column."""


def histograms_of(query: Query, keys: Mapping[KeyColumn, KeySketch], rates: Mapping[str, float]) -> Histograms:
    """The histogram of each column that the streams of a query are joined by, given their sketches and rates."""
    histograms: dict[str, Mapping[Hashable, float]] = {}
    for class_number, attribute_class in enumerate(query.graph.classes):
        sketches = {
            alias: keys[alias, class_number]
            for alias in query.aliases
            if (alias, class_number) in keys and isinstance(attribute_class.key(alias), Column)
        }
        if sketches:
            histograms |= _of_class(attribute_class, sketches, rates)
    return histograms


def _of_class(
    attribute_class: AttributeClass, sketches: Mapping[str, KeySketch], rates: Mapping[str, float]
) -> Histograms:
    cells = value_cells(attribute_class, sketches, LISTED_SHARE, MOST_LISTED)
    if cells is None:
        return {}
    shares = cells.shares
    if not cells.are_different:
        # What streams differ by may be chance: parts would be made of it.
        shares = shares.mean(axis=0, keepdims=True).repeat(len(shares), axis=0)
    known: dict[int, Any] = {}
    for sketch in sketches.values():
        known |= sketch.keys(attribute_class.type, cells.words)
    others = Others(max(1, round(float(cells.distinct[-1]) + len(cells.words) - len(known))))
    histograms: dict[str, Mapping[Hashable, float]] = {}
    for alias, of_stream in zip(cells.streams, shares.tolist(), strict=True):
        rate = rates.get(alias, 0.0)
        listed = {
            known[word]: rate * share for word, share in zip(cells.words, of_stream, strict=False) if word in known
        }
        histograms[f"{alias}.{_column(attribute_class, alias)}"] = {
            **listed,
            others: max(0.0, rate - sum(listed.values())),
        }
    return histograms


def _column(attribute_class: AttributeClass, alias: str) -> str:
    key = attribute_class.key(alias)
    assert isinstance(key, Column)
    return key.name


def have_moved(
    before: Mapping[str, Mapping[Hashable, float]], now: Mapping[str, Mapping[Hashable, float]], drift: float
) -> bool:
    """Whether, for some column, more than the share `drift` of the rows has other keys than before."""
    if before.keys() != now.keys():
        return True
    return any(_moved(before[column], now[column]) > drift for column in now)


def _moved(before: Mapping[Hashable, float], now: Mapping[Hashable, float]) -> float:
    """The share of rows that would have to have another key."""
    totals = sum(before.values()), sum(now.values())
    if not all(totals):
        return 0.0 if totals[0] == totals[1] else 1.0

    def share(histogram: Mapping[Hashable, float], key: Hashable, total: float) -> float:
        return histogram.get(key, 0.0) / total

    listed = {key for key in (*before, *now) if not isinstance(key, Others)}
    differences = [share(now, key, totals[1]) - share(before, key, totals[0]) for key in listed]
    return sum(difference for difference in differences if difference > 0)
