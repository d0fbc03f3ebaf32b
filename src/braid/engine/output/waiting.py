"""Rows that wait for a watermark after the inner joins: their layout, and what a host must store of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from braid.engine.arrays.jit import Words
from braid.engine.input.lifetime import event_times
from braid.engine.output.emitter import EVENT_TIME_TYPE
from braid.engine.segment import no_rows
from braid.model.expressions.expression import Column
from braid.model.window import FOREVER

START, END, TIME = "start", "end", "time"
"""The columns of a row that hold its lifetime and its event time. All other columns have numbers for names."""


@dataclass(frozen=True, slots=True)
class WaitingRows:
    """Rows that have begun to wait, to be stored in the log `name`.

    A row of the log, also of an earlier step, is needed as long as the time in its column `until` is at or after
    `needed_since`.
    """

    name: str
    rows: pa.RecordBatch
    until: str
    needed_since: int


@dataclass(frozen=True)
class RowLayout:
    """Which columns of streams a row has after some joins, and their types; then come START, END and TIME."""

    types: Mapping[Column, pa.DataType]

    @cached_property
    def names(self) -> Mapping[Column, str]:
        return {column: str(position) for position, column in enumerate(self.types)}

    @cached_property
    def schema(self) -> pa.Schema:
        columns = [pa.field(self.names[column], kind) for column, kind in self.types.items()]
        return pa.schema([*columns, *(pa.field(name, EVENT_TIME_TYPE) for name in (START, END, TIME))])

    def of_combinations(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Rows of combinations, whose last columns are START and END. Their event time is their start."""
        return pa.RecordBatch.from_arrays([*rows.columns, rows.column(rows.num_columns - 2)], schema=self.schema)

    def with_columns(self, types: Mapping[Column, pa.DataType]) -> RowLayout:
        return RowLayout({**self.types, **types})

    def rows(
        self, columns: Mapping[str, pa.Array], starts: Words | pa.Array, ends: Words | pa.Array, times: Words | pa.Array
    ) -> pa.RecordBatch:
        """Rows with these columns, given by their names in this layout, and nulls in all others."""
        arrays = [
            columns[name] if name in columns else pa.nulls(len(starts), self.schema.field(name).type)
            for name in self.names.values()
        ]
        return pa.RecordBatch.from_arrays([*arrays, *map(timestamps, (starts, ends, times))], schema=self.schema)


def timestamps(moments: Words | pa.Array) -> pa.Array:
    """Event times in microseconds as a column; a column is returned as it is."""
    return pa.array(moments).cast(EVENT_TIME_TYPE) if isinstance(moments, np.ndarray) else moments


def moments(rows: pa.RecordBatch, name: str) -> Words:
    """A column of times in microseconds."""
    return event_times(rows.column(name))


def concatenated(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    """All rows in one batch."""
    batches = [batch for batch in batches if batch.num_rows]
    if len(batches) == 1:
        return batches[0]
    return pa.concat_batches(batches) if batches else no_rows(schema)


def time_of_absence(times: Words, ends: Words) -> Words:
    """The event times of rows that never had a partner: the time at which they end, because only then is it certain.

    For a row that never ends it is certain only when the input ends. Such a row keeps the event time that it has.
    """
    result: Words = np.where(ends == FOREVER, times, np.maximum(times, ends))
    return result
