"""A stream as a table for DuckDB: the row numbers, the event times and the columns that the query uses.

A column may be there twice: with the values for expressions, and with values that sort exactly as the column does.
DuckDB lacks some Arrow types, so columns that the query does not use are left out.
"""

from __future__ import annotations

from collections.abc import Set

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from braid.model.window import FOREVER

ROW = "row "
"""The column with the number of each row in its stream."""

TIME = "time "
"""The column with the event time in microseconds; null for a row that is never alive."""

WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
}
"""Types that Spark lacks, and the types it uses instead."""


def ordering(column: str) -> str:
    """The name of the column whose values sort as this column does."""
    return f"order of {column}"


def relation_of(rows: pa.Table, time: str, named: Set[str], ordered: bool) -> pa.Table:
    """ROW, TIME and the columns in `named` (lower case) of a stream; with `ordered`, also the order of each column."""
    columns = {name: _computable(rows.column(name)) for name in rows.column_names if name.lower() in named}
    if ordered:
        columns |= {ordering(name): _orderable(rows.column(name)) for name in rows.column_names}
    row_numbers = pa.array(np.arange(rows.num_rows))
    return pa.table(columns | {ROW: row_numbers, TIME: microseconds(rows.column(time))})


def microseconds(times: pa.ChunkedArray) -> pa.Array:
    """Timestamps of any unit as microseconds since 1970, rounded down, and limited to what fits 64 bits."""
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[times.type.unit]
    column = times.combine_chunks().cast(pa.int64())
    counts = column.fill_null(0).to_numpy(zero_copy_only=False)
    if per_second > 10**6:
        whole = counts // (per_second // 10**6)
    else:
        scale = 10**6 // per_second
        whole = np.clip(counts, -(FOREVER // scale), FOREVER // scale) * scale
    return pa.array(whole, pa.int64(), mask=np.asarray(column.is_null()))


def _stored(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The storage of an extension type, by which it compares; a decimal of negative scale with scale 0."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return _stored(pa.chunked_array([chunk.storage for chunk in column.chunks], kind.storage_type))
    if pa.types.is_decimal(kind) and kind.scale < 0 and kind.precision - kind.scale <= 38:
        return column.cast(pa.decimal128(kind.precision - kind.scale, 0))
    return column


def _computable(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    """The values for expressions: times in microseconds, and unsigned integers as signed ones, as in Spark."""
    column = _stored(column)
    if pa.types.is_timestamp(column.type):
        return microseconds(column).cast(pa.timestamp("us", column.type.tz))
    wider = WIDER.get(column.type)
    return column if wider is None else column.cast(wider)


def _orderable(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    """Values that sort as the column does, in a type that DuckDB has."""
    column = _stored(column)
    if pa.types.is_float16(column.type):
        return column.cast(pa.float32())
    if pa.types.is_decimal256(column.type):
        ranks = pc.rank(column, tiebreaker="dense")
        return pc.if_else(column.is_valid(), ranks, pa.scalar(None, pa.uint64()))
    return column
