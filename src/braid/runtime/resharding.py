"""Resharding: divides the state of a query among another number of shards.

Every row in a store goes to the shards that would have got it if the query had always had the new number of shards. So
the query goes on as if nothing had changed. If a row was copied to several old shards, only one of its copies is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from braid.engine.arrays.jit import Words
from braid.engine.input.lifetime import event_times
from braid.engine.kernels.expression import compile_expression
from braid.engine.keys.hashing import key_words
from braid.engine.output.existence import WAITING
from braid.engine.output.waiting import TIME
from braid.engine.segment import Segment
from braid.errors import BraidError
from braid.model.expressions.expression import Cast, Column, Expression, map_columns
from braid.model.expressions.typing import type_of
from braid.model.query import Query
from braid.model.window import FOREVER
from braid.runtime.manifest import Manifest
from braid.runtime.packing import SourcePacker
from braid.runtime.query_spec import QuerySpec
from braid.runtime.retention import Retention, logged_streams
from braid.runtime.routing import Dimension, Router, coordinates_of, equalities, routing_classes
from braid.runtime.segment_log import MANIFEST, SegmentLog, write_manifest
from braid.runtime.spread_table import SpreadTable
from braid.runtime.store import DictionaryStore, Key, Store
from braid.runtime.watermarks import Watermarks


class Resharder:
    """Divides the stored rows of the shards of `before` among the shards of `after`, which run the same query.

    `manifests` are those of the old shards, by shard. `table` has the keys that they spread; the new ones spread none.
    """

    def __init__(
        self,
        before: QuerySpec,
        after: QuerySpec,
        manifests: Mapping[int, Manifest],
        table: SpreadTable | None = None,
    ) -> None:
        if after.narrow.fixed_joins:
            raise BraidError(
                "rows that wait for a partner in an outer, semi or anti join cannot be divided among another number of "
                "shards; keep the number, or start the query anew"
            )
        if not manifests:
            raise BraidError("there is no shard to take rows from; run the query until it has taken a micro-batch")
        self._router = before.router
        self._table = SpreadTable() if table is None else table
        self._after = after
        self._manifests = manifests
        self._streams = {logged.number: stream for stream, logged in logged_streams(after.narrow).items()}
        self._packers = {
            source.declared.name: SourcePacker(after.narrow, after.router, source) for source in after.narrow.inputs
        }

    def manifest(self) -> Manifest:
        """The manifest of a new shard before it gets its rows."""
        manifests = self._manifests.values()
        # All shards take every batch, so they agree on everything but their own rows.
        latest = max(manifests, key=lambda manifest: manifest.step)
        return Manifest(
            self._after.fingerprint(),
            latest.plan,
            latest.against,
            step=latest.step,
            newest=dict(latest.newest),
            watermarks=dict(latest.watermarks),
            needed_since=_least(manifest.needed_since for manifest in manifests),
            rejected=latest.rejected,
        )

    def cut(self, shard: int, key: Key, data: bytes) -> Iterator[tuple[int, Segment]]:
        """Divides one entry in the store of an old shard: pairs of a new shard and the segment that it gets."""
        if key == MANIFEST:
            return
        stream = self._streams[key[0]]
        if stream != WAITING and not _counts_here(self._router, shard, stream):
            return
        manifest = self._manifests[shard]
        entry = next(entry for entry in manifest.entries[stream] if entry.number == key[1])
        log = SegmentLog(DictionaryStore(), manifest, logged_streams(self._after.narrow))
        rows = log.needed_rows(stream, entry, data)
        if not rows.num_rows:
            return
        if stream == WAITING:
            yield from self._route_waiting(rows)
            return
        rows = self._packers[stream].at_home(rows, self._router, shard, self._table)
        for new_shard, segment in self._packers[stream].route(rows, entry.newest):
            if segment.rows.num_rows:
                yield new_shard, segment

    def _route_waiting(self, rows: pa.RecordBatch) -> Iterator[tuple[int, Segment]]:
        shards = self._waiting_router.shards_of(rows)
        for shard in np.unique(shards).tolist():
            chosen = rows.filter(pa.array(shards == shard))
            newest = int(event_times(chosen.column(TIME)).max())
            yield shard, Segment(WAITING, chosen, newest=newest)

    @cached_property
    def _waiting_router(self) -> _WaitingRouter:
        return _WaitingRouter(self._after.narrow, self._after.router)


def fill(store: Store, query: Query, manifest: Manifest, segments: Iterable[Segment]) -> None:
    """Write a new shard of a query (`QuerySpec.narrow`) to an empty store."""
    manifest = replace(manifest, entries={}, newest=dict(manifest.newest), watermarks=dict(manifest.watermarks))
    retention = Retention(query, store, manifest, Watermarks(query, manifest.newest, manifest.watermarks))
    for segment in segments:
        retention.move_in(segment)
    write_manifest(store, manifest)


class _WaitingRouter:
    """Routes results that wait for existence tests: each to a shard that gets all tested rows which it may match.

    A tested stream either is copied along a dimension of the grid, so that any coordinate will do, or is routed by a
    key. A waiting result carries the column that it is compared with, so it can be routed by the same key.
    """

    def __init__(self, query: Query, router: Router) -> None:
        self._query = query
        self._router = router
        compared = query.compared
        positions = range(len(query.selected), len(query.selected) + len(compared))
        self._names = {column: str(position) for column, position in zip(compared, positions, strict=True)}
        self._keys = [self._key(dimension) for dimension in router.dimensions]

    def shards_of(self, rows: pa.RecordBatch) -> Words:
        shards = np.zeros(rows.num_rows, np.int64)
        for dimension, key in zip(self._router.dimensions, self._keys, strict=True):
            shards *= dimension.share
            if key is not None:
                shards += coordinates_of(key_words(_evaluate(*key, rows)), dimension.share)
        return shards

    def _key(self, dimension: Dimension) -> tuple[Expression, pa.DataType] | None:
        """The key of a dimension, read from waiting results; None if every coordinate gets all tested rows."""
        if dimension.attribute_class is None:
            return None
        attribute_class = routing_classes(self._query)[dimension.attribute_class]
        for existence in self._query.existences:
            alias = existence.source.alias
            for equality in equalities(self._query, alias, existence.predicates):
                tested = (alias, equality.later_side)
                joined = (equality.earlier_alias, equality.earlier_side)
                if {tested, joined} <= set(attribute_class.members):
                    return map_columns(equality.earlier_side, self._read), attribute_class.type
        return None

    def _read(self, column: Column) -> Column:
        return Column(None, self._names[column])


def _evaluate(expression: Expression, kind: pa.DataType, rows: pa.RecordBatch) -> pa.Array:
    """The values of an expression over waiting results, converted to the type in which keys are compared."""

    def type_of_column(column: Column) -> pa.DataType:
        return rows.schema.field(column.name).type

    if type_of(expression, type_of_column) != kind:
        expression = Cast(expression, kind)
    compiled = compile_expression(expression, type_of_column)
    return compiled({column: rows.column(column.name) for column in compiled.columns}, rows.num_rows)


def _counts_here(router: Router, shard: int, stream: str) -> bool:
    """Whether this shard has the copies of a stream's rows that are used: those at coordinate 0."""
    for dimension, coordinate in zip(router.dimensions, router.coordinates(shard), strict=True):
        if stream not in dimension.streams and coordinate != 0:
            return False
    return True


def _least(times: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The least time of each stream; -FOREVER where a shard has none."""
    listed = list(times)
    streams = {stream for mapping in listed for stream in mapping}
    return {stream: min(mapping.get(stream, -FOREVER) for mapping in listed) for stream in streams}
