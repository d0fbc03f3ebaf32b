"""ROW_NUMBER: the best results of each partition, from all results of a query."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from braid.engine.arrays.jit import Words
from braid.engine.keys.ordering import number_values, sortable
from braid.engine.output.groups import in_windows
from braid.model.expressions.aggregates import WINDOW_END, WINDOW_START
from braid.model.expressions.types import DURATION
from braid.model.grouping import END, START
from braid.model.output import Output
from braid.model.ranking import RANK, Ranking


def ranked(ranking: Ranking, rows: pa.Table) -> pa.Table:
    """The results that a ranking keeps.

    `rows` have the columns that it reads and, if the ranking has a window, their event time as the last column.
    """
    if ranking.window is not None:
        rows = in_windows(rows.rename_columns([*rows.column_names[:-1], START]), ranking.window)
        rows = rows.append_column(END, pc.add(rows[START], pa.scalar(ranking.window.length, DURATION)))
    if ranking.start is not None:
        starts = rows[ranking.input_name(ranking.start)]
        rows = rows.filter(pc.equal(pc.cast(starts, rows[START].type), rows[START]))
    rows, ranks = _in_order(ranking, rows)
    kept = (ranks >= ranking.first) & (ranks <= ranking.last)
    rows, ranks = rows.filter(pa.array(kept)), ranks[kept]
    for condition in ranking.conditions:
        passing = rows[ranking.input_name(condition)].combine_chunks().fill_null(False)
        rows, ranks = rows.filter(passing), ranks[passing.to_numpy(zero_copy_only=False)]
    fields = [_field(ranking, output, rows.schema) for output in ranking.selected]
    columns = [_column(ranking, output, rows, ranks) for output in ranking.selected]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _in_order(ranking: Ranking, rows: pa.Table) -> tuple[pa.Table, Words]:
    """The rows, those of a partition together and in its order, and the rank of each."""
    partition = [number_values(rows[ranking.input_name(key)].combine_chunks(), {}) for key in ranking.keys]
    if ranking.window is not None:
        partition.append(number_values(rows[START].combine_chunks(), {}))
    columns = {f"key {position}": pa.array(numbers) for position, numbers in enumerate(partition)}
    keys = [(name, "ascending", "at_start") for name in columns]
    for position, item in enumerate(ranking.order):
        columns[str(position)] = sortable(rows[ranking.input_name(item.expression)].combine_chunks())
        direction = "descending" if item.descending else "ascending"
        keys.append((str(position), direction, "at_start" if item.nulls_first else "at_end"))
    order: Words = pc.sort_indices(pa.table(columns), keys).to_numpy().astype(np.int64)
    begins = np.ones(len(order), np.bool_)
    for number, numbers in enumerate(partition):
        changed = np.diff(numbers[order], prepend=-1) != 0
        begins = changed if number == 0 else begins | changed
    places = np.arange(len(order))
    first = np.maximum.accumulate(np.where(begins, places, 0)) if len(order) else places
    return rows.take(pa.array(order)), places - first + 1


def _field(ranking: Ranking, output: Output, schema: pa.Schema) -> pa.Field:
    if output.expression == RANK:
        return pa.field(output.name, pa.int32())
    return schema.field(_name(ranking, output)).with_name(output.name)


def _column(ranking: Ranking, output: Output, rows: pa.Table, ranks: Words) -> pa.ChunkedArray | pa.Array:
    if output.expression == RANK:
        return pa.array(ranks, pa.int32())
    return rows[_name(ranking, output)]


def _name(ranking: Ranking, output: Output) -> str:
    if ranking.window is not None and output.expression in (WINDOW_START, WINDOW_END):
        return START if output.expression == WINDOW_START else END
    return ranking.input_name(output.expression)
