"""Groups of results: aggregates over Arrow columns, and what a query selects of them.

Nothing here depends on the order of rows but the last digits of sums of floating-point numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from braid.engine.input.lifetime import event_times
from braid.engine.kernels.casts import Conversion
from braid.engine.kernels.expression import compile_expression
from braid.engine.kernels.values import null_where
from braid.engine.keys.hashing import order_words
from braid.model.expressions.expression import Column
from braid.model.expressions.types import DURATION, INSTANT, plain
from braid.model.grouping import END, START, Grouping, Measure, TimeWindow

WIDE = 76
"""Sums of exact numbers are made in decimals so wide that they cannot overflow; then it is seen what fits."""

MAGNITUDE = np.int64(2**63 - 1)


class Selection:
    """What is selected of groups, given the types of the join's results; times that are `carried` go along."""

    def __init__(self, grouping: Grouping, inputs: pa.Schema, carried: Sequence[str] = ()) -> None:
        kinds = {Column(None, name): type_ for name, type_ in grouping.group_types(inputs).items()}
        self._columns = tuple(kinds)
        self._outputs = [
            compile_expression(grouping.over_groups(output.expression), kinds.__getitem__)
            for output in grouping.outputs
        ]
        self._having = (
            None
            if grouping.having is None
            else compile_expression(grouping.over_groups(grouping.having), kinds.__getitem__)
        )
        self._carried = carried
        names = (output.name for output in grouping.outputs)
        fields = [pa.field(name, output.type) for name, output in zip(names, self._outputs, strict=True)]
        self.schema = pa.schema([*fields, *(pa.field(name, INSTANT) for name in carried)])

    def __call__(self, groups: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of the result, of groups that have the columns of `Grouping.group_types`."""
        if self._having is not None:
            groups = groups.filter(self._having(self._values(groups), groups.num_rows))
        values = self._values(groups)
        columns = [output(values, groups.num_rows) for output in self._outputs]
        columns += [groups.column(name) for name in self._carried]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _values(self, groups: pa.RecordBatch) -> dict[Column, pa.Array]:
        return {column: groups.column(column.name) for column in self._columns}


def group(grouping: Grouping, rows: pa.Table, event_time: str) -> pa.Table:
    """The result of a grouped query, of all rows that its join gives."""
    measures = grouping.measures(rows.schema)
    columns = {name: _key(_plain(rows.column(name))) for name in grouping.key_names}
    columns |= {
        measure.name: _argument(measure, _plain(rows.column(measure.column)))
        for measure in measures
        if measure.column is not None
    }
    table = pa.table({**columns, START: rows.column(event_time)})
    by = list(grouping.key_names)
    if grouping.window is not None:
        table = _in_windows(table, grouping.window)
        by.append(START)
    found = table.group_by(by).aggregate([step for measure in measures for step in _steps(measure)])
    groups = {name: found[name].combine_chunks() for name in by}
    groups |= {measure.name: _value(measure, found) for measure in measures}
    if grouping.window is not None:
        groups[END] = pc.add(groups[START], pa.scalar(grouping.window.length, DURATION))
    select = Selection(grouping, rows.schema)
    return pa.Table.from_batches([select(pa.record_batch(groups))], select.schema)


def _plain(column: pa.ChunkedArray) -> pa.Array:
    values = column.combine_chunks()
    converted: pa.Array = Conversion(values.type, plain(values.type))(values)
    return converted


def _key(values: pa.Array) -> pa.Array:
    """Values of which Arrow finds equal those that the language does: there is one NaN and one zero."""
    if not types.is_floating(values.type):
        return values
    return _from_sortable(_sortable(values)).cast(values.type)


def _in_windows(table: pa.Table, window: TimeWindow) -> pa.Table:
    """Each row once for each window that it is in, START being when that begins."""
    times = event_times(table.column(START).combine_chunks())
    last = times - times % window.slide
    starts, places = [], []
    for earlier in range(-(-window.length // window.slide)):
        start = last - earlier * window.slide
        inside = np.flatnonzero(start + window.length > times)
        starts.append(start[inside])
        places.append(inside)
    moments = pa.array(np.concatenate(starts)).cast(INSTANT)
    place = table.column_names.index(START)
    return table.take(pa.array(np.concatenate(places))).set_column(place, START, moments)


def _argument(measure: Measure, values: pa.Array) -> pa.Array:
    """What is given to Arrow's aggregate."""
    if measure.function in ("sum", "avg") and types.is_floating(values.type):
        return Conversion(values.type, pa.float64())(values)
    if measure.function in ("sum", "avg"):
        # Exact, so that it does not matter in which order rows come.
        return values.cast(pa.decimal256(WIDE, getattr(values.type, "scale", 0)))
    if measure.function in ("min", "max") and types.is_floating(values.type):
        return _sortable(values)
    if measure.function in ("min", "max") and types.is_duration(values.type):
        return values.cast(pa.int64())
    return values


def _steps(measure: Measure) -> list[tuple[str | list[str], str]]:
    """The aggregates of Arrow that a measure is made of."""
    if measure.column is None:
        return [([], "count_all")]
    if measure.function == "avg":
        return [(measure.name, "sum"), (measure.name, "count")]
    return [(measure.name, measure.function)]


def _value(measure: Measure, found: pa.Table) -> pa.Array:
    """What Arrow's aggregate gave, as the language has it."""
    if measure.column is None:
        return found["count_all"].combine_chunks().cast(measure.type)
    if measure.function == "avg":
        total, count = (
            found[f"{measure.name}_{part}"].combine_chunks().cast(pa.float64()) for part in ("sum", "count")
        )
        return pc.divide(total, count)
    values = found[f"{measure.name}_{measure.function}"].combine_chunks()
    if measure.function == "sum" and not types.is_floating(values.type):
        return _fitting(values, measure.type)
    if measure.function in ("min", "max") and types.is_floating(measure.type):
        return _from_sortable(values).cast(measure.type)
    return values.cast(measure.type)


def _fitting(sums: pa.Array, type_: pa.DataType) -> pa.Array:
    """Sums in the type they are to have, null where they do not fit it."""
    if types.is_integer(type_):
        least, most = Decimal(-(2**63)), Decimal(2**63 - 1)
    else:
        most = (Decimal(10) ** type_.precision - 1).scaleb(-type_.scale)
        least = -most
    too_small = pc.less(sums, pa.scalar(least, sums.type))
    too_large = pc.greater(sums, pa.scalar(most, sums.type))
    return null_where(pc.or_(too_small, too_large), sums).cast(type_)


def _sortable(values: pa.Array) -> pa.Array:
    """Integers in the order of floating-point numbers: NaN is the largest, and there is one zero."""
    return pa.array(order_words(values), mask=np.asarray(values.is_null()))


def _from_sortable(values: pa.Array) -> pa.Array:
    order = values.fill_null(0).to_numpy(zero_copy_only=False)
    return pa.array((order ^ ((order >> 63) & MAGNITUDE)).view(np.float64), mask=np.asarray(values.is_null()))
