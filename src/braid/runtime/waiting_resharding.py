"""Resharding of the rows that wait: for a partner in an outer, semi or anti join, or for an existence test.

They are rows of the joins, so each is in one shard. It goes to any shard that gets all rows that it may still match.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from braid.engine.arrays.jit import Words
from braid.engine.engine import Engine
from braid.engine.input.lifetime import event_times
from braid.engine.kernels.expression import compile_expression
from braid.engine.keys.hashing import key_words
from braid.engine.output.existence import WAITING
from braid.engine.output.pending import Pending
from braid.engine.output.waiting import TIME
from braid.engine.segment import Segment
from braid.errors import BraidError
from braid.model.expressions.expression import Cast, Column, Expression, columns_of, map_columns
from braid.model.expressions.typing import type_of
from braid.model.query import Query
from braid.runtime.packing import SourcePacker
from braid.runtime.routing import Dimension, Router, coordinates_of
from braid.runtime.routing_classes import later_streams, routing_classes, routing_ties

Cut = Callable[[int, pa.RecordBatch], Iterator[tuple[int, pa.RecordBatch]]]
"""Divides rows of an old shard: pairs of a new shard and the rows that it gets."""


class WaitingResharder:
    """Divides the logs of waiting rows of `before.shards` old shards among the shards of `after`.

    `packers` are those of the new shards, by stream. Rows of different old shards can have the same id, so in the new
    shards each id also tells the old shard.
    """

    def __init__(
        self, query: Query, engine: Engine, before: Router, after: Router, packers: Mapping[str, SourcePacker]
    ) -> None:
        _check(query, before)
        self._old_shards = before.shards
        self._new_shards = after.shards
        self._logs = engine.logs
        self._cuts: dict[str, Cut] = {}
        later = [source for source, _ in later_streams(query)]
        for number, stage in enumerate(engine.stages):
            route = _Route(query, after, stage.left_columns, [source.alias for source in later[number:]])
            self._add(stage.left, route.cut)
            if stage.right is not None:
                self._add(stage.right, _by_packer(packers[later[number].declared.name]))
        if query.existences:
            positions = range(len(query.selected), len(query.selected) + len(query.compared))
            names = {column: str(position) for column, position in zip(query.compared, positions, strict=True)}
            tested = [existence.source.alias for existence in query.existences]
            self._cuts[WAITING] = _Route(query, after, names, tested).cut

    def __contains__(self, log: str) -> bool:
        return log in self._cuts

    def cut(self, shard: int, log: str, rows: pa.RecordBatch) -> Iterator[tuple[int, Segment]]:
        """Divides rows of a log of an old shard: pairs of a new shard and the segment that it gets."""
        for new_shard, cut in self._cuts[log](shard, rows):
            newest = int(event_times(cut.column(self._logs[log])).max())
            yield new_shard, Segment(log, cut, newest=newest)

    def _add(self, pending: Pending, cut: Cut) -> None:
        rows_log, matches_log = pending.logs

        def cut_rows(shard: int, rows: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
            return cut(shard, pending.with_ids(rows, pending.ids(rows) * self._old_shards + shard))

        def cut_matches(shard: int, rows: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
            """Every shard gets them, because they do not tell where their rows are; `Pending.folded` uses its own."""
            marked = pending.with_ids(rows, pending.ids(rows) * self._old_shards + shard)
            return ((new_shard, marked) for new_shard in range(self._new_shards))

        self._cuts |= {rows_log: cut_rows, matches_log: cut_matches}


def _check(query: Query, before: Router) -> None:
    """Refuse joins behind others of whose streams the old shards may have kept different rows (`Resharder`)."""
    for join in query.fixed_joins[1:]:
        window, alias = join.source.window, join.source.alias
        if before.shards > 1 and window.end_column is not None:
            raise BraidError(
                f"rows that wait in {join.kind.value} {alias} {window}, after another outer, semi or anti join, cannot "
                f"be divided among other shards, because the window of {alias} does not end by event time alone; keep "
                "the number of shards, or start the query anew"
            )


def _by_packer(packer: SourcePacker) -> Cut:
    """Rows of a preserved right side are routed like any row of their stream."""

    def cut(shard: int, rows: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        for new_shard, segment in packer.route(rows, 0):
            if segment.rows.num_rows:
                yield new_shard, segment.rows

    return cut


class _Route:
    """Routes waiting rows: each to a shard that gets all rows of the streams `later` which it may match.

    Such a stream either is copied along a dimension of the grid, so that any coordinate will do, or is routed by a
    key. A waiting row has the column that this key is compared with, so it is routed by the same key. `names` are the
    columns that waiting rows have.
    """

    def __init__(self, query: Query, router: Router, names: Mapping[Column, str], later: Sequence[str]) -> None:
        self._router = router
        self._names = names
        classes = routing_classes(query)
        self._types = [attribute_class.type for attribute_class in classes]
        self._keys: dict[int, list[Expression]] = {}
        for tie in routing_ties(query):
            side = tie.equality.earlier_side
            if tie.alias in later and names.keys() >= set(columns_of(side)):
                self._keys.setdefault(tie.class_number, []).append(map_columns(side, self._read))

    def cut(self, shard: int, rows: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        shards = np.zeros(rows.num_rows, np.int64)
        for dimension in self._router.dimensions:
            shards = shards * dimension.share + self._coordinates(dimension, rows)
        for new_shard in np.unique(shards).tolist():
            yield new_shard, rows.filter(pa.array(shards == new_shard))

    def _coordinates(self, dimension: Dimension, rows: pa.RecordBatch) -> Words:
        keys = [] if dimension.attribute_class is None else self._keys.get(dimension.attribute_class, [])
        if not keys:
            return coordinates_of(event_times(rows.column(TIME)), dimension.share)
        kind = self._types[dimension.attribute_class or 0]
        # After an outer join some are null; the others are equal.
        values = pc.coalesce(*(_evaluate(key, kind, rows) for key in keys))
        return coordinates_of(key_words(values), dimension.share)

    def _read(self, column: Column) -> Column:
        return Column(None, self._names[column])


def _evaluate(expression: Expression, kind: pa.DataType, rows: pa.RecordBatch) -> pa.Array:
    """The values of an expression over waiting rows, converted to the type in which keys are compared."""

    def type_of_column(column: Column) -> pa.DataType:
        return rows.schema.field(column.name).type

    if type_of(expression, type_of_column) != kind:
        expression = Cast(expression, kind)
    compiled = compile_expression(expression, type_of_column)
    return compiled({column: rows.column(column.name) for column in compiled.columns}, rows.num_rows)
