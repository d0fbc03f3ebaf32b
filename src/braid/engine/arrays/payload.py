"""The payload of a window: the columns that it keeps besides lifetimes and key words, by row id."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from braid.engine.arrays.columns import Flags, Heap, Ring, State, column_of
from braid.engine.arrays.jit import Records, Words
from braid.engine.keys.nested import canonical


class Payload:
    """Columns of rows; the window says when its rings are resized and which rows are gone."""

    def __init__(self, kinds: Sequence[pa.DataType], capacity: int) -> None:
        self._columns = [column_of(kind, capacity) for kind in kinds]

    def append(self, rows: pa.RecordBatch, first: int) -> None:
        """Add rows with ids from `first` on, right after those already here."""
        for position, column in enumerate(self._columns):
            column.write(first, rows.column(position))

    def forget(self, tail: int) -> None:
        """Rows below the id `tail` will not be read again."""
        for column in self._columns:
            column.forget(tail)

    def resize(self, capacity: int, tail: int, next_id: int) -> None:
        """Follow a window that resizes its rings; the rows from `tail` up to `next_id` are kept."""
        for column in self._columns:
            column.resize(capacity, tail, next_id)

    def take(self, position: int, ids: Words) -> pa.Array:
        """The values of the column at a position, for rows in any order and with repetitions."""
        return self._columns[position].take(ids)

    def rows(self, ids: Words) -> pa.RecordBatch:
        """All columns of some rows, in a form that `append` takes."""
        columns = [column.take_large(ids) if isinstance(column, Heap) else column.take(ids) for column in self._columns]
        return pa.RecordBatch.from_arrays(columns, [str(position) for position in range(len(columns))])

    def words(self, position: int) -> Records:
        """The ring of a column whose values are several words each, for reading and writing in place."""
        column = self._columns[position]
        assert isinstance(column, Ring)
        return column.values

    def state(self) -> list[State]:
        return [column.state() for column in self._columns]

    def load(self, states: Sequence[State]) -> None:
        for column, state in zip(self._columns, states, strict=True):
            column.load(state)

    def equals(self, position: int, ids: Words, other: Payload, other_position: int, other_ids: Words) -> Flags:
        """Whether the values of a column equal those of a column of another payload, row by row; none is null."""
        ours, theirs = self._columns[position], other._columns[other_position]
        if isinstance(ours, Heap) and isinstance(theirs, Heap):
            return ours.equals(ids, theirs, other_ids)
        values = [ours.take(ids), theirs.take(other_ids)]
        if pa.types.is_nested(values[0].type):
            values = [canonical(value) for value in values]
        same: Flags = pc.equal(*values).to_numpy(zero_copy_only=False)
        return same
