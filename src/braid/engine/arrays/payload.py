"""The columns that a window keeps beside keys and lifetimes, by row id."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from braid.engine.arrays.columns import Flags, Heap, Ring, State, column_of
from braid.engine.arrays.jit import Records, Words
from braid.engine.keys.nested import canonical


class Payload:
    """Rows of some columns; the window says when its rings are resized and which rows are gone."""

    def __init__(self, kinds: Sequence[pa.DataType], capacity: int) -> None:
        self._columns = [column_of(kind, capacity) for kind in kinds]

    def append(self, rows: pa.RecordBatch, first: int) -> None:
        """Take rows whose ids count up from `first`, right behind those already here."""
        for place, column in enumerate(self._columns):
            column.write(first, rows.column(place))

    def forget(self, tail: int) -> None:
        """Rows below the id `tail` will not be asked for again."""
        for column in self._columns:
            column.forget(tail)

    def resize(self, capacity: int, tail: int, head: int) -> None:
        """The window's rings have got another size; the rows from `tail` up to `head` are kept."""
        for column in self._columns:
            column.resize(capacity, tail, head)

    def take(self, place: int, ids: Words) -> pa.Array:
        """The values of the column at a place, for rows in any order, repeated as asked."""
        return self._columns[place].take(ids)

    def rows(self, ids: Words) -> pa.RecordBatch:
        """All columns of some rows, to be written again."""
        columns = [column.take_large(ids) if isinstance(column, Heap) else column.take(ids) for column in self._columns]
        return pa.RecordBatch.from_arrays(columns, [str(place) for place in range(len(columns))])

    def words(self, place: int) -> Records:
        """The ring of a column whose values are several words each, to be read and written in place."""
        column = self._columns[place]
        assert isinstance(column, Ring)
        return column.values

    def state(self) -> list[State]:
        return [column.state() for column in self._columns]

    def load(self, states: Sequence[State]) -> None:
        for column, state in zip(self._columns, states, strict=True):
            column.load(state)

    def equals(self, place: int, ids: Words, other: Payload, other_place: int, other_ids: Words) -> Flags:
        """Where values of a column equal those of another of the same type; none of them is null."""
        ours, theirs = self._columns[place], other._columns[other_place]
        if isinstance(ours, Heap) and isinstance(theirs, Heap):
            return ours.equals(ids, theirs, other_ids)
        values = [ours.take(ids), theirs.take(other_ids)]
        if pa.types.is_nested(values[0].type):
            values = [canonical(value) for value in values]
        same: Flags = pc.equal(*values).to_numpy(zero_copy_only=False)
        return same
