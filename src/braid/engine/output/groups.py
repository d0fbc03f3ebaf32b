"""Groups of results (GROUP BY): aggregates over Arrow columns, and what a query selects from the groups.

The order of rows affects nothing here, except the last digits of sums of floating-point numbers.
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
from braid.engine.keys.nested import canonical
from braid.model.expressions.expression import Column
from braid.model.expressions.types import DURATION, INSTANT, plain
from braid.model.grouping import END, START, Grouping, Measure, SessionWindow, TimeWindow

WIDE = 76
"""The digits of the decimals in which exact numbers are summed: wide enough that no sum overflows."""

MAGNITUDE = np.int64(2**63 - 1)
"""All bits of a floating-point number except its sign."""


class Selection:
    """Computes the SELECT list and HAVING over groups; `inputs` is the schema of the join's results.

    The timestamp columns named in `carried` are passed through.
    """

    def __init__(self, grouping: Grouping, inputs: pa.Schema, carried: Sequence[str] = ()) -> None:
        types_by_column = {Column(None, name): type_ for name, type_ in grouping.group_types(inputs).items()}
        self._columns = tuple(types_by_column)
        self._outputs = [
            compile_expression(grouping.over_groups(output.expression), types_by_column.__getitem__)
            for output in grouping.outputs
        ]
        self._having = None
        if grouping.having is not None:
            self._having = compile_expression(grouping.over_groups(grouping.having), types_by_column.__getitem__)
        self._carried = carried
        names = (output.name for output in grouping.outputs)
        fields = [pa.field(name, output.type) for name, output in zip(names, self._outputs, strict=True)]
        self.schema = pa.schema([*fields, *(pa.field(name, INSTANT) for name in carried)])

    def __call__(self, groups: pa.RecordBatch) -> pa.RecordBatch:
        """The result rows of groups; these have the columns of `Grouping.group_types`."""
        if self._having is not None:
            groups = groups.filter(self._having(self._values(groups), groups.num_rows))
        values = self._values(groups)
        columns = [output(values, groups.num_rows) for output in self._outputs]
        columns += [groups.column(name) for name in self._carried]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _values(self, groups: pa.RecordBatch) -> dict[Column, pa.Array]:
        return {column: groups.column(column.name) for column in self._columns}


def group(grouping: Grouping, rows: pa.Table, event_time: str) -> pa.Table:
    """The result of a grouped query, given all results of its joins."""
    measures = grouping.measures(rows.schema)
    columns = {name: _key(_in_plain_type(rows.column(name))) for name in grouping.key_names}
    columns |= {
        measure.name: _argument(measure, _in_plain_type(rows.column(measure.column)))
        for measure in measures
        if measure.column is not None
    }
    table = pa.table({**columns, START: rows.column(event_time)})
    group_columns = list(grouping.key_names)
    assert not isinstance(grouping.window, SessionWindow), "only Spark has sessions"
    if grouping.window is not None:
        table = in_windows(table, grouping.window)
        group_columns.append(START)
    for measure in measures:
        if measure.distinct:
            position = table.column_names.index(measure.name)
            table = table.set_column(position, measure.name, _first_of_each(table, group_columns, measure.name))
    aggregates = [aggregate for measure in measures for aggregate in _aggregates(measure)]
    aggregated = table.group_by(group_columns).aggregate(aggregates)
    groups = {name: aggregated[name].combine_chunks() for name in group_columns}
    groups |= {measure.name: _value(measure, aggregated) for measure in measures}
    if grouping.window is not None:
        groups[END] = pc.add(groups[START], pa.scalar(grouping.window.length, DURATION))
    select = Selection(grouping, rows.schema)
    return pa.Table.from_batches([select(pa.record_batch(groups))], select.schema)


def _in_plain_type(column: pa.ChunkedArray) -> pa.Array:
    values = column.combine_chunks()
    converted: pa.Array = Conversion(values.type, plain(values.type))(values)
    return converted


def _key(values: pa.Array) -> pa.Array:
    """Values that Arrow finds equal exactly if the query language does: there is one NaN and one zero."""
    if not types.is_floating(values.type):
        return values
    return _from_sortable(_sortable(values)).cast(values.type)


def in_windows(table: pa.Table, window: TimeWindow) -> pa.Table:
    """Each row once for each time window that it is in; START is when that window begins."""
    times = event_times(table.column(START).combine_chunks())
    last_start = times - times % window.slide
    windows_per_row = -(-window.length // window.slide)
    starts, rows = [], []
    for steps_back in range(windows_per_row):
        start = last_start - steps_back * window.slide
        inside = np.flatnonzero(start + window.length > times)
        starts.append(start[inside])
        rows.append(inside)
    start_column = pa.array(np.concatenate(starts)).cast(INSTANT)
    position = table.column_names.index(START)
    return table.take(pa.array(np.concatenate(rows))).set_column(position, START, start_column)


def _first_of_each(table: pa.Table, group_columns: Sequence[str], name: str) -> pa.Array:
    """The column with repeated values of a group set to null, so that each counts once."""
    values = table[name].combine_chunks()
    compared = table.select(group_columns).append_column("value", canonical(values))
    compared = compared.append_column("row", _row_numbers(table))
    first = compared.group_by([*group_columns, "value"]).aggregate([("row", "min")]).column("row_min").to_numpy()
    repeated = np.ones(len(values), np.bool_)
    repeated[first] = False
    return null_where(pa.array(repeated), values)


def _row_numbers(table: pa.Table) -> pa.Array:
    return pa.array(np.arange(table.num_rows))


def _argument(measure: Measure, values: pa.Array) -> pa.Array:
    """The values that Arrow aggregates for a measure."""
    if measure.function in ("sum", "avg") and types.is_floating(values.type):
        return Conversion(values.type, pa.float64())(values)
    if measure.function in ("sum", "avg"):
        # Exact, so that the order of rows does not matter.
        return values.cast(pa.decimal256(WIDE, getattr(values.type, "scale", 0)))
    if measure.function in ("min", "max") and types.is_floating(values.type):
        return _sortable(values)
    if measure.function in ("min", "max") and types.is_duration(values.type):
        return values.cast(pa.int64())
    return values


def _aggregates(measure: Measure) -> list[tuple[str | list[str], str]]:
    """The Arrow aggregates that a measure is computed from."""
    if measure.column is None:
        return [([], "count_all")]
    if measure.function == "avg":
        return [(measure.name, "sum"), (measure.name, "count")]
    return [(measure.name, measure.function)]


def _value(measure: Measure, aggregated: pa.Table) -> pa.Array:
    """The values of a measure, from Arrow's aggregates."""
    if measure.column is None:
        return aggregated["count_all"].combine_chunks().cast(measure.type)
    if measure.function == "avg":
        total = aggregated[f"{measure.name}_sum"].combine_chunks().cast(pa.float64())
        count = aggregated[f"{measure.name}_count"].combine_chunks().cast(pa.float64())
        return pc.divide(total, count)
    values = aggregated[f"{measure.name}_{measure.function}"].combine_chunks()
    if measure.function == "sum" and not types.is_floating(values.type):
        return _fitting(values, measure.type)
    if measure.function in ("min", "max") and types.is_floating(measure.type):
        return _from_sortable(values).cast(measure.type)
    return values.cast(measure.type)


def _fitting(sums: pa.Array, type_: pa.DataType) -> pa.Array:
    """Sums in the type of their measure; null where they do not fit."""
    if types.is_integer(type_):
        least, most = Decimal(-(2**63)), Decimal(2**63 - 1)
    else:
        most = (Decimal(10) ** type_.precision - 1).scaleb(-type_.scale)
        least = -most
    too_small = pc.less(sums, pa.scalar(least, sums.type))
    too_large = pc.greater(sums, pa.scalar(most, sums.type))
    return null_where(pc.or_(too_small, too_large), sums).cast(type_)


def _sortable(values: pa.Array) -> pa.Array:
    """Integers that are ordered as the floating-point numbers are: NaN is the largest, and there is one zero."""
    return pa.array(order_words(values), mask=np.asarray(values.is_null()))


def _from_sortable(values: pa.Array) -> pa.Array:
    """The floating-point numbers of `_sortable` integers."""
    order = values.fill_null(0).to_numpy(zero_copy_only=False)
    return pa.array((order ^ ((order >> 63) & MAGNITUDE)).view(np.float64), mask=np.asarray(values.is_null()))
