"""Views made of the rows of one stream alone, batch by batch: SELECTs without windows, TUMBLE and HOP."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from braid.engine.input.lifetime import event_times
from braid.engine.kernels.expression import Compiled, compile_expression
from braid.model.expressions.expression import Column
from braid.model.row_query import RowQuery
from braid.model.window_function import WindowFunction
from braid.runtime.table_join import Frame, TableJoiner

LATEST = 1 << 62
"""Event times beyond this many microseconds are in the window of this one."""


class RowMaker:
    """Makes the rows of a `RowQuery`; `tables` are the rows of its tables, by name."""

    def __init__(self, query: RowQuery, tables: Mapping[str, pa.RecordBatch]) -> None:
        schemas = {query.alias: query.stream.schema, **{join.alias: join.table.schema for join in query.joins}}

        def column_type(column: Column) -> pa.DataType:
            return schemas[column.source or ""].field(column.name).type

        self._query = query
        self._joins = [TableJoiner(join, tables[join.table.name], column_type) for join in query.joins]
        self._filters = [compile_expression(predicate.expression, column_type) for predicate in query.filters]
        self._outputs = [compile_expression(output.expression, column_type) for output in query.outputs]

    def make(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        fields = zip(rows.schema.names, rows.columns, strict=True)
        frame = Frame({Column(self._query.alias, name): values for name, values in fields}, rows.num_rows)
        for join in self._joins:
            frame = join.join(frame)
        for condition in self._filters:
            holds = pc.fill_null(_values(condition, frame), False).to_numpy(zero_copy_only=False)
            frame = frame.take(pa.array(np.flatnonzero(holds)))
        columns = [_values(output, frame) for output in self._outputs]
        return pa.RecordBatch.from_arrays(columns, schema=self._query.result.schema)


def _values(compiled: Compiled, frame: Frame) -> pa.Array:
    return compiled({column: frame.columns[column] for column in compiled.columns}, frame.length)


def with_windows(rows: pa.RecordBatch, time: str, function: WindowFunction, schema: pa.Schema) -> pa.RecordBatch:
    """Each row once for each of its windows, with the bounds of the window. A row without a time comes once."""
    column = rows.column(time)
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    times = np.zeros(rows.num_rows, np.int64)
    times[valid] = np.clip(event_times(column.drop_null()), -LATEST, LATEST)
    last = times // function.slide * function.slide
    copies = -(-function.size // function.slide)
    starts = last[:, np.newaxis] - np.arange(copies) * function.slide
    inside = starts + function.size > times[:, np.newaxis]
    inside[~valid] = np.arange(copies) == 0
    positions, _ = np.nonzero(inside)
    begin, untimed = starts[inside], ~valid[positions]
    bounds = [pa.array(bound, pa.int64(), mask=untimed) for bound in (begin, begin + function.size)]
    kinds = [field.type for field in schema][-2:]
    columns = [*rows.take(pa.array(positions)).columns, *map(pa.Array.cast, bounds, kinds)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
