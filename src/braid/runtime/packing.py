"""Before the shuffle: cuts the rows of a stream into segments, one for each shard."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from braid.engine.arrays.jit import Words
from braid.engine.input.lifetime import event_times
from braid.engine.input.screen import Screen
from braid.engine.keys.hashing import combine_words, key_words
from braid.engine.segment import Segment
from braid.model.expressions.types import has_equality
from braid.model.predicate import Predicate
from braid.model.query import Query, Source
from braid.model.window import FOREVER
from braid.runtime.routing import Router, coordinates_of
from braid.runtime.routing_classes import later_streams, routing_classes
from braid.runtime.spread_table import SpreadTable


class SourcePacker:
    """Packs rows for one source of a query whose shards `router` tells.

    Rows that cannot be part of a result, or match one, are dropped, unless the window of the source counts rows.
    """

    def __init__(self, query: Query, router: Router, source: Source) -> None:
        alias = source.alias
        classes = {
            class_number: attribute_class
            for class_number, attribute_class in enumerate(routing_classes(query))
            if alias in attribute_class.sources
        }
        later = {later_source.alias: predicates for later_source, predicates in later_streams(query)}
        selections: list[Predicate] = []
        self._needed: Collection[int] = ()
        if alias not in later:
            selections = list(query.graph.selections_of(alias))
            # A row needs a key in each class of the inner joins. Classes that only tie it to a stream joined later do
            # not count: a null there matches no row of that stream, and what becomes of the row is not decided here.
            self._needed = query.graph.classes_of(alias).keys()
        elif not any(join.source.alias == alias and join.kind.preserves_right for join in query.fixed_joins):
            selections = [predicate for predicate in later[alias] if predicate.sources == {alias}]
            self._needed = classes.keys()
        self._alias = alias
        self._router = router
        self._stream = source.declared
        self._counts_rows = source.window.counts_rows
        self._screen = Screen(source, selections, classes)

    def pack(self, rows: pa.RecordBatch, table: SpreadTable | None = None) -> Iterator[tuple[int, Segment]]:
        """A segment for every shard; one without rows still carries the newest event time of the stream.

        Keys of the `table` are spread over the shards.
        """
        timed = TimedRows.of(conform(rows, self._stream.schema), self._stream.time)
        return self.route(timed.rows, timed.newest, timed.untimed, table)

    def route(
        self, rows: pa.RecordBatch, newest: int, untimed: int = 0, table: SpreadTable | None = None
    ) -> Iterator[tuple[int, Segment]]:
        """The same for rows that all have an event time, where the caller knows the newest one of the stream."""
        keys = self._screen.values(rows)
        if not self._counts_rows:
            needed = {class_number: keys[class_number] for class_number in self._needed}
            passing = self._screen.passing(rows, needed, np.full(rows.num_rows, True))
            if len(passing) < rows.num_rows:
                rows = rows.take(pa.array(passing))
                keys = {class_number: values.take(pa.array(passing)) for class_number, values in keys.items()}
        words = {class_number: key_words(values) for class_number, values in keys.items()}
        times = event_times(rows.column(self._stream.time))

        def row_words(positions: Words) -> Words:
            """A word for all values of a row, so that it goes the same way if it is packed again."""
            return _row_words(rows.take(pa.array(positions)), times[positions])

        routes = list(self._router.route(self._alias, words, times, table, row_words))
        copied = sum(len(positions) for _, positions in routes) - rows.num_rows * self._router.copies([self._alias])
        for shard, positions in routes:
            routed = rows if len(positions) == rows.num_rows else rows.take(pa.array(positions))
            # Rows without a time belong to no shard, and copies to none in particular; shard 0 counts them.
            counts = {"untimed": untimed, "copied": copied} if shard == 0 else {}
            yield shard, Segment(self._alias, routed, newest=newest, **counts)

    def at_home(self, rows: pa.RecordBatch, router: Router, shard: int, table: SpreadTable) -> pa.RecordBatch:
        """The rows of a shard of the grid `router`, without the copies of heavy keys that other shards have too.

        Of the copies along an axis of a key, the one at its first position is kept.
        """
        if not table.keys:
            return rows
        words = {class_number: key_words(values) for class_number, values in self._screen.values(rows).items()}
        is_home = np.full(rows.num_rows, True)
        for index, (dimension, coordinate) in enumerate(zip(router.dimensions, router.coordinates(shard), strict=True)):
            for key in table.of(index):
                if self._alias in dimension.streams and self._alias != key.stream:
                    is_copied = words[dimension.attribute_class or 0] == key.word
                    home = int(coordinates_of(np.array([key.word]), dimension.share)[0])
                    is_home &= ~is_copied | (key.position(coordinate - home, dimension.share) == 0)
        return rows if is_home.all() else rows.filter(pa.array(is_home))


def _row_words(rows: pa.RecordBatch, times: Words) -> Words:
    """A word for each row. Columns with nulls are left out: the words of nulls are arbitrary."""
    columns = [column for column in rows.columns if not column.null_count and _has_words(column.type)]
    return combine_words([times, *map(key_words, columns)])


def _has_words(kind: pa.DataType) -> bool:
    """Whether values of a type have words as they are. As a key, values of some other types are converted first."""
    is_converted = pa.types.is_dictionary(kind) or pa.types.is_decimal32(kind) or pa.types.is_decimal64(kind)
    return has_equality(kind) and not is_converted and not isinstance(kind, pa.BaseExtensionType)


@dataclass(frozen=True)
class TimedRows:
    """The rows that have an event time, the newest of these times, and how many rows have none."""

    rows: pa.RecordBatch
    newest: int
    untimed: int

    @classmethod
    def of(cls, rows: pa.RecordBatch, time: str) -> TimedRows:
        times = rows.column(time)
        newest = pc.max(times)
        moment = int(event_times(pa.array([newest]))[0]) if newest.is_valid else -FOREVER
        timed = rows.filter(pc.is_valid(times)) if times.null_count else rows
        return cls(timed, moment, times.null_count)


def conform(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The columns that the query reads, in the types it was checked with."""
    columns = [rows.column(field.name).cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
