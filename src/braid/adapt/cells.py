"""Cells: how the rows of each stream are distributed over the keys of an attribute class.

There are three ways to cut the keys into cells: one cell for each frequent key and one for all others, hash classes, or
ranges. Sketches of several shards add up, so cells describe the whole query. From the statistics of all keys, cells
derive those of a part of the keys: of the combinations of each set of streams, a part gets the share whose key is in
the part. Within a cell, all keys count as equally frequent.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from braid.adapt.key_values import key_at, keys_of, numbers_of, tells_keys, words_of
from braid.adapt.sketch import HASH_CLASSES, KeySketch
from braid.model.graph import AttributeClass
from braid.model.partitions import HashPartitions, Partitioning, RangePartition, ValuePartition, hash_classes
from braid.model.plan import Plan
from braid.model.statistics import Statistics, Subject

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Labels = NDArray[np.int64]

FREQUENT_SHARE = 0.05
"""A key with at least this share of the rows of any stream has a cell of its own."""

MOST_FREQUENT = 16
"""At most this many keys have a cell of their own."""

RANGES = 16
"""The number of ranges."""

ROWS_OF_A_CELL = 32
"""Shares count as certain if they come from at least this many rows of each stream per cell."""

LEAST_CONTRAST = 0.2
"""Keys are divided only if two streams differ by at least this much (`Cells.contrast`). If all streams have the same
keys, one order is the best for every key."""

FINE_CLASSES = 1 << 16
"""With this many hash classes, a class stands for a single key: it hardly ever has two."""


@dataclass(frozen=True, eq=False)
class Cells(ABC):
    """The cells of an attribute class, and the share of the rows of each stream in each cell.

    `shares` has a row for each stream of the class and a column for each cell; `distinct` is the number of keys in each
    cell; `sampled` is the number of rows of each stream that its shares come from.
    """

    attribute_class: AttributeClass
    streams: tuple[str, ...]
    shares: Floats
    distinct: Floats
    sampled: Floats

    def fraction(self, streams: Collection[str], chosen: Flags) -> float:
        """The share of the combinations of some streams that have a key in the chosen cells."""
        rows = [position for position, stream in enumerate(self.streams) if stream in streams]
        if not rows:
            return 1.0
        by_cell = self.shares[rows].prod(axis=0) / self.distinct ** (len(rows) - 1)
        total = by_cell.sum()
        return float(by_cell[chosen].sum() / total) if total else 0.0

    def statistics(self, whole: Statistics, chosen: Flags) -> Statistics:
        """The statistics of the chosen cells, from those of all keys.

        Streams without a key have all their rows in every part.
        """
        selectivities: dict[Subject, float] = {}
        for subject, share in whole.selectivities.items():
            ends = subject if isinstance(subject, frozenset) else frozenset[str]()
            # The share of all pairs of rows that are in the part, and of those that match.
            pairs = float(np.prod([self.fraction([end], chosen) for end in ends]))
            ratio = self.fraction(ends, chosen) / pairs if pairs else 1.0
            selectivities[subject] = min(1.0, share * ratio)
        fanouts = {}
        for (head, bound), fanout in whole.fanouts.items():
            rows = self.fraction([head], chosen)
            fanouts[head, bound] = fanout * self.fraction(bound, chosen) / rows if rows else 0.0
        return replace(
            whole,
            rates={alias: rate * self.fraction([alias], chosen) for alias, rate in whole.rates.items()},
            populations={alias: rows * self.fraction([alias], chosen) for alias, rows in whole.populations.items()},
            selectivities=selectivities,
            fanouts=fanouts,
        )

    def differ(self, other: Cells, drift: float) -> bool:
        """Whether, for some stream, more than the share `drift` of its rows is in other cells than in `other`."""
        if self.shares.shape != other.shares.shape:
            return True
        return bool((np.abs(self.shares - other.shares).sum(axis=1) / 2 > drift).any())

    @property
    def contrast(self) -> float:
        """How much the two most different streams differ: the share of rows that would have to move to other cells.

        Two samples of the same rows differ by chance. Twice the expected difference is subtracted.
        """
        contrasts = [0.0]
        for (one, rows), (other, other_rows) in combinations(zip(self.shares, self.sampled, strict=True), 2):
            variance = (one * (1 - one)) / max(1.0, rows) + (other * (1 - other)) / max(1.0, other_rows)
            # A normal variable is on average sqrt(2 / pi) standard deviations away from its mean.
            by_chance = sqrt(2 / pi) * float(np.sqrt(np.maximum(variance, 0.0)).sum()) / 2
            contrasts.append(float(np.abs(one - other).sum()) / 2 - 2 * by_chance)
        return max(contrasts)

    @property
    def are_different(self) -> bool:
        """Whether streams certainly differ in their keys, so that parts may have different best orders."""
        return bool((self.sampled >= ROWS_OF_A_CELL * len(self.distinct)).all()) and self.contrast >= LEAST_CONTRAST

    def divide(self, plans: Sequence[Plan]) -> Plan:
        """A plan with parts, given the plan of each cell. Cells with the same plan share a part."""
        rest = self._rest(plans)
        parts: dict[Plan | int, list[int]] = {}
        for cell, plan in enumerate(plans):
            if plan != rest:
                parts.setdefault(self._group(plans, cell), []).append(cell)
        return rest.with_parts(tuple((self._partition(cells), plans[cells[0]]) for cells in parts.values()))

    def _rest(self, plans: Sequence[Plan]) -> Plan:
        """The plan of the keys that get no part of their own: the plan of most cells."""
        distinct = [plan for position, plan in enumerate(plans) if plan not in plans[:position]]
        return max(distinct, key=list(plans).count)

    def _group(self, plans: Sequence[Plan], cell: int) -> int:
        """The first cell of the part that a cell belongs to: the first cell with the same plan."""
        return next(first for first, plan in enumerate(plans) if plan == plans[cell])

    @abstractmethod
    def _partition(self, cells: Sequence[int]) -> Partitioning:
        """The keys of some cells."""

    @abstractmethod
    def find(self, partition: Partitioning) -> Flags | None:
        """The cells of a partition; None if it is not made of such cells."""


@dataclass(frozen=True, eq=False)
class ValueCells(Cells):
    """A cell for each of some frequent keys, given by their words, and a last one for all other keys."""

    words: tuple[int, ...] = ()

    def _rest(self, plans: Sequence[Plan]) -> Plan:
        return plans[-1]

    def _partition(self, cells: Sequence[int]) -> Partitioning:
        words = [self.words[cell] for cell in cells]
        if tells_keys(self.attribute_class.type):
            return ValuePartition(self.attribute_class, frozenset(keys_of(words, self.attribute_class.type)))
        classes = hash_classes(np.array(words, np.int64), FINE_CLASSES)
        return HashPartitions(self.attribute_class, FINE_CLASSES, frozenset(classes.tolist()))

    def find(self, partition: Partitioning) -> Flags | None:
        inside: Flags = np.zeros(len(self.words) + 1, np.bool_)
        if isinstance(partition, ValuePartition) and tells_keys(self.attribute_class.type):
            inside[:-1] = np.isin(self.words, words_of(partition.values, self.attribute_class.type))
        elif isinstance(partition, HashPartitions) and partition.count == FINE_CLASSES:
            classes = hash_classes(np.array(self.words, np.int64), FINE_CLASSES)
            inside[:-1] = np.isin(classes, list(partition.members))
        else:
            return None
        return inside


@dataclass(frozen=True, eq=False)
class HashCells(Cells):
    """The hash classes of the sketches."""

    def _partition(self, cells: Sequence[int]) -> Partitioning:
        return HashPartitions(self.attribute_class, HASH_CLASSES, frozenset(cells))

    def find(self, partition: Partitioning) -> Flags | None:
        if not isinstance(partition, HashPartitions) or partition.count != HASH_CLASSES:
            return None
        inside: Flags = np.isin(np.arange(HASH_CLASSES), list(partition.members))
        return inside


@dataclass(frozen=True, eq=False)
class RangeCells(Cells):
    """Ranges of keys in order: a cell begins at each of `limits`, and the first one has no beginning."""

    limits: tuple[Any, ...] = ()

    def _group(self, plans: Sequence[Plan], cell: int) -> int:
        """The first cell of the part that a cell belongs to. A part is one range, so its cells are neighbours."""
        first = cell
        while first and plans[first - 1] == plans[cell]:
            first -= 1
        return first

    def _partition(self, cells: Sequence[int]) -> Partitioning:
        ends = [None, *self.limits, None]
        return RangePartition(self.attribute_class, ends[cells[0]], ends[cells[-1] + 1])

    def find(self, partition: Partitioning) -> Flags | None:
        """The cells of a range. Each end of the range is moved to the nearest limit between two cells."""
        if not isinstance(partition, RangePartition):
            return None
        limits = self._numbers(self.limits)
        first, last = (
            None if end is None else int(np.abs(limits - self._numbers([end])).argmin()) + 1
            for end in (partition.first, partition.below)
        )
        cells = np.arange(len(self.limits) + 1)
        inside: Flags = (cells >= (first or 0)) & (cells < (len(cells) if last is None else last))
        return inside

    def _numbers(self, keys: Sequence[Any]) -> Floats:
        kind = self.attribute_class.type
        return numbers_of(np.array(words_of(keys, kind), np.int64), kind)


def cells_of(attribute_class: AttributeClass, sketches: Mapping[str, KeySketch]) -> Iterator[Cells]:
    """The cells of each kind, from the sketches of the keys of each stream; none if a stream has no keys yet."""
    streams = tuple(sketches)
    distinct = [sketch.distinct for sketch in sketches.values()]
    if len(streams) < 2 or frozenset(streams) != attribute_class.sources or None in distinct:
        return
    keys = max(1.0, *(count for count in distinct if count is not None))
    by_value = value_cells(attribute_class, sketches)
    if by_value is not None and by_value.words:
        yield by_value
    counts = np.array([sketch.by_class for sketch in sketches.values()])
    if (counts.sum(axis=1) > 0).all() and keys > 1:
        shares = counts / counts.sum(axis=1, keepdims=True)
        per_class = np.full(HASH_CLASSES, max(1.0, keys / HASH_CLASSES))
        yield HashCells(attribute_class, streams, shares, per_class, _spread_rows(sketches))
    if all(len(sketch.ordered.numbers) for sketch in sketches.values()):
        yield from _by_range(attribute_class, sketches, keys)


def value_cells(
    attribute_class: AttributeClass,
    sketches: Mapping[str, KeySketch],
    share: float = FREQUENT_SHARE,
    most: int = MOST_FREQUENT,
) -> ValueCells | None:
    """A cell for each key with at least this share of the rows of any stream; None if a stream has no keys yet."""
    distinct_keys = [sketch.distinct for sketch in sketches.values() if sketch.distinct is not None]
    if not distinct_keys or len(distinct_keys) < len(sketches):
        return None
    frequent = [sketch.frequent() for sketch in sketches.values()]
    largest_share: dict[int, float] = {}
    for shares in frequent:
        for word, of_stream in shares.items():
            if of_stream >= share:
                largest_share[word] = max(of_stream, largest_share.get(word, 0.0))
    words = tuple(sorted(largest_share, key=lambda word: (-largest_share[word], word))[:most])
    shares_by_stream = []
    for shares, sketch in zip(frequent, sketches.values(), strict=True):
        # A key that is not frequent in this stream has the mean share of all keys that are not. There may be more of
        # these than keys that the stream has shown so far.
        infrequent = max(1.0, sum(word not in shares for word in words), sketch.distinct or 1.0)
        mean_share = max(0.0, 1.0 - sum(shares.values())) / infrequent
        word_shares = [shares.get(word, mean_share) for word in words]
        # So it may be thought to have more than all rows, if few of its keys have been seen.
        total = max(1.0, sum(word_shares))
        shares_by_stream.append([word_share / total for word_share in (*word_shares, total - sum(word_shares))])
    distinct = np.array([*(1.0 for _ in words), max(1.0, *distinct_keys) - len(words)])
    sampled = np.array([float(sketch.sampled) for sketch in sketches.values()])
    return ValueCells(
        attribute_class, tuple(sketches), np.array(shares_by_stream), np.maximum(distinct, 1.0), sampled, words
    )


def _by_range(attribute_class: AttributeClass, sketches: Mapping[str, KeySketch], keys: float) -> Iterator[RangeCells]:
    kind = attribute_class.type
    merged = np.concatenate([sketch.ordered.numbers for sketch in sketches.values()])
    numbers = np.unique(np.quantile(merged, np.arange(1, RANGES) / RANGES, method="higher"))
    limits = sorted({key_at(number, kind) for number in numbers})
    if not limits:
        return
    bounds = numbers_of(np.array(words_of(limits, kind), np.int64), kind)
    below = np.array([sketch.ordered.share_below(bounds) for sketch in sketches.values()])
    shares = np.diff(below, axis=1, prepend=0.0, append=1.0)
    first, last = min(merged.min(), bounds[0]), max(merged.max(), bounds[-1])
    widths = np.diff(np.concatenate([[first], bounds, [last]]))
    distinct = np.maximum(1.0, keys * widths / max(widths.sum(), 1e-300))
    yield RangeCells(attribute_class, tuple(sketches), shares, distinct, _spread_rows(sketches), tuple(limits))


def _spread_rows(sketches: Mapping[str, KeySketch]) -> Floats:
    return np.array([float(sketch.spread_rows) for sketch in sketches.values()])
