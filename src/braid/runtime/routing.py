"""Which shards a row goes to, so that all rows of a result meet in exactly one shard.

The shards form a grid. Each dimension of the grid belongs to an attribute class or to one stream. A row that has a key
in the class, or is of the stream, goes to one coordinate of the dimension; any other row is copied to all coordinates.
Keys with very many rows can be spread (see `spread_table`).
If all streams share one class, this is plain hash partitioning. With several classes, or with conditions that are no
equalities, copying rows is the price of joining all streams after a single shuffle.

A row of a stream that is joined later (LEFT JOIN, EXISTS, ..) goes to every shard that may hold a result of the inner
joins that it matches: the shards of the class that it is compared with by equality, or else all shards. A row that is
preserved itself (RIGHT JOIN, FULL JOIN) must be in one shard only. So there is only one shard if these streams and all
inner joins do not share a class.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from braid.engine.arrays.columns import Flags
from braid.engine.arrays.jit import Words
from braid.engine.keys.hashing import combine_words
from braid.model.query import Query
from braid.model.window import FOREVER
from braid.runtime.routing_classes import routing_classes
from braid.runtime.spread_table import SpreadKey, SpreadTable

ROUTING_SALT = np.int64(0x5BD1E995)
"""Makes the routing hash differ from the index hash. Otherwise the rows of a shard would share few index buckets."""

BATCHES_WATCHED = 3
"""The rows of this many micro-batches show how fast the streams are."""

WORTH_TELLING = 1.5
"""A grid that gives shards this many times the rows of the best grid is worth a warning."""


@dataclass(frozen=True, slots=True)
class Dimension:
    """One dimension of the grid, with `share` coordinates.

    `attribute_class` is a position in `routing_classes`. If it is None, the dimension belongs to a single stream, whose
    rows are spread by their event times.
    """

    attribute_class: int | None
    streams: frozenset[str]
    share: int


@dataclass(frozen=True, slots=True)
class Router:
    """A grid of shards, numbered from 0."""

    dimensions: tuple[Dimension, ...]

    @property
    def shards(self) -> int:
        return prod(dimension.share for dimension in self.dimensions)

    def copies(self, streams: Collection[str]) -> int:
        """How many shards get a copy of a row of a stream, or of a combination of rows of several streams."""
        return prod(dimension.share for dimension in self.dimensions if dimension.streams.isdisjoint(streams))

    def coordinates(self, shard: int) -> tuple[int, ...]:
        """The coordinates of a shard."""
        return tuple(map(int, np.unravel_index(shard, [dimension.share for dimension in self.dimensions])))

    def shard_at(self, coordinates: Sequence[int]) -> int:
        """The shard that has these coordinates."""
        return int(np.ravel_multi_index(coordinates, [dimension.share for dimension in self.dimensions]))

    def rows_per_shard(self, rows: Mapping[str, float]) -> float:
        """How many of these rows, counted by stream, a shard gets; copies count."""
        return sum(count * self.copies([stream]) for stream, count in rows.items()) / self.shards

    def route(
        self,
        stream: str,
        words: Mapping[int, Words],
        times: Words,
        table: SpreadTable | None = None,
        row_words: Callable[[Words], Words] | None = None,
    ) -> Iterator[tuple[int, Words]]:
        """For each shard, the positions of the rows that go there, given their key words by class and event times.

        Keys of the `table` are spread or copied over as many coordinates as they need, from their home on. `row_words`
        gives a word for each of some rows, to spread them by; by default it is their event time.
        """
        spread_table = SpreadTable() if table is None else table
        by_dimension: list[Flags | None] = []
        for index, dimension in enumerate(self.dimensions):
            if stream not in dimension.streams:
                by_dimension.append(None)
                continue
            hashed = times if dimension.attribute_class is None else words[dimension.attribute_class]
            placed = coordinates_of(hashed, dimension.share)
            here: Flags = placed == np.arange(dimension.share)[:, None]
            for word in spread_table.words(index):
                rows = np.flatnonzero(hashed == word)
                if len(rows):
                    here[:, rows] = False
                    home, axes = placed[rows[0]], spread_table.axes(index, word)
                    rows, steps = _spread_and_copied(stream, axes, rows, times, row_words, dimension.share)
                    here[(home + steps) % dimension.share, rows] = True
            by_dimension.append(here)
        for shard, shard_coordinates in enumerate(product(*(range(dimension.share) for dimension in self.dimensions))):
            chosen = np.full(len(times), True)
            for here_by_coordinate, coordinate in zip(by_dimension, shard_coordinates, strict=True):
                if here_by_coordinate is not None:
                    chosen &= here_by_coordinate[coordinate]
            yield shard, np.flatnonzero(chosen)


def _spread_and_copied(
    stream: str,
    axes: Sequence[SpreadKey],
    rows: Words,
    times: Words,
    row_words: Callable[[Words], Words] | None,
    share: int,
) -> tuple[Words, Words]:
    """The rows of a heavy key, each as often as it is copied, and how many coordinates from its home each one goes."""
    steps = np.zeros(len(rows), np.int64)
    for axis in axes:
        if axis.stream == stream:
            is_spread = times[rows] >= axis.begin
            spread_by = times[rows[is_spread]] if row_words is None else row_words(rows[is_spread])
            steps[is_spread] = axis.stride * coordinates_of(spread_by, axis.positions(share))
    for axis in axes:
        if axis.stream != stream:
            is_copied = times[rows] < axis.until
            offsets = axis.stride * np.arange(1, axis.positions(share))
            copied_steps = np.add.outer(steps[is_copied], offsets).ravel()
            rows = np.concatenate([rows, np.repeat(rows[is_copied], len(offsets))])
            steps = np.concatenate([steps, copied_steps])
    return rows, steps


def router_for(query: Query, shards: int, rates: Mapping[str, float] | None = None) -> Router:
    """The grid of this many shards that gives each shard the fewest rows.

    `rates` are how many rows the streams bring, by alias, in any unit; without rates, all count as equally fast. Where
    that leaves a choice, rows with long windows are copied rather than those with short ones: who gives a stream a
    short window mostly does so because it is a fast one.

    If a window counts the rows of its whole stream, there is only one shard, because one place must see them all.
    """
    if any(source.window.counts_rows and not _counts_by_class(query, source.alias) for source in query.sources):
        return Router((Dimension(None, frozenset(query.aliases[:1]), 1),))
    sides = _sides(query)
    if not all(_preserved(query) <= streams for _, streams in sides):
        shards = 1
    known = rates or {}
    rows = {source.alias: known.get(source.alias, 1.0) for source in query.inputs}
    briefness = {source.alias: 1 / (source.window.lifetime or FOREVER) for source in query.inputs}
    grids = []
    for shares in _factorisations(shards, len(sides)):
        dimensions = [Dimension(*side, share) for side, share in zip(sides, shares, strict=True)]
        grids.append(Router(tuple(dimensions)))
    return min(grids, key=lambda grid: (grid.rows_per_shard(rows), grid.rows_per_shard(briefness)))


class CopyWatch:
    """Finds out whether another grid would copy far fewer rows, now that rows have come, and tells it once."""

    def __init__(self, query: Query, router: Router) -> None:
        self._query = query
        self._router = router
        self._rows = Counter[str]()
        self._batches = 0

    def update(self, rows: Mapping[str, int]) -> float | None:
        """Take in the rows of a micro-batch, by alias; returns how many times too many rows a shard gets.

        None if that is no news, or not worth a new checkpoint.
        """
        if not any(rows.values()):
            return None
        self._rows.update(rows)
        self._batches += 1
        if self._batches != BATCHES_WATCHED:
            return None
        best = router_for(self._query, self._router.shards, self._rows)
        excess = self._router.rows_per_shard(self._rows) / best.rows_per_shard(self._rows)
        return excess if excess >= WORTH_TELLING else None

    def rows_of_streams(self) -> dict[str, int]:
        """The rows so far, by the name of the declared stream."""
        return {source.declared.name: self._rows[source.alias] for source in self._query.inputs}


def _counts_by_class(query: Query, alias: str) -> bool:
    """Whether each partition of a window that counts rows is in one shard: it is partitioned by the only join key."""
    window = query.source(alias).window
    classes = query.graph.classes
    if not window.counts_rows or len(classes) != 1 or classes[0].sources != frozenset(query.aliases):
        return False
    return any(str(classes[0].key(alias)) == f"{alias}.{name}" for name in window.partition_by)


def _preserved(query: Query) -> frozenset[str]:
    """The streams joined later whose rows are results of their own if nothing matches them."""
    return frozenset(join.source.alias for join in query.fixed_joins if join.kind.preserves_right)


def _sides(query: Query) -> list[tuple[int | None, frozenset[str]]]:
    """The dimensions of the grid without their shares: a class number, or None, and the streams that it spreads."""
    joined = frozenset(query.aliases)
    classes = routing_classes(query)
    by_class: list[tuple[int | None, frozenset[str]]] = [
        (class_number, attribute_class.sources) for class_number, attribute_class in enumerate(classes)
    ]
    # The grid must not depend on the order of conditions in the text, which may change between runs on a checkpoint.
    by_class.sort(key=lambda side: sorted(map(str, classes[side[0] or 0].members)))
    covering = [side for side in by_class if joined <= side[1]]
    if covering:
        return [max(covering, key=lambda side: (_preserved(query) <= side[1], len(side[1])))]
    covered = frozenset[str]().union(*(streams for _, streams in by_class))
    return by_class + [(None, frozenset({stream})) for stream in query.aliases if stream not in covered]


def _factorisations(shards: int, sides: int) -> Iterator[tuple[int, ...]]:
    """Every way to write `shards` as a product of `sides` factors."""
    if sides == 1:
        yield (shards,)
        return
    for first in range(1, shards + 1):
        if shards % first == 0:
            yield from ((first, *rest) for rest in _factorisations(shards // first, sides - 1))


def coordinates_of(words: Words, share: int) -> Words:
    """The coordinate, out of `share`, of each row with these words."""
    if share == 1:
        return np.zeros(len(words), np.int64)
    salted = np.full(len(words), ROUTING_SALT)
    return (combine_words([salted, words]).view(np.uint64) % np.uint64(share)).astype(np.int64)
