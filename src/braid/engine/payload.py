"""The columns of a window's rows, by row id.

Numbers, dates and the like lie in rings beside the window's own, where any row is one look away. Everything else is
kept in the Arrow batches it came in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from braid.engine.compiled import Words

LEAST_MERGED = 1 << 16
MOST_BATCHES = 8
"""Batches are merged while they are small, or while they hold less than one part in this many of all rows."""

RING_WIDTHS: dict[int, type[np.signedinteger[Any]]] = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}


class Payload:
    """Rows of some columns; the caller says when the ring is resized and which rows are gone."""

    def __init__(self, kinds: Sequence[pa.DataType], capacity: int) -> None:
        self._kinds = tuple(kinds)
        self._rings = {place: Ring(kind, capacity) for place, kind in enumerate(kinds) if _ring_width(kind) is not None}
        self._others = [place for place in range(len(kinds)) if place not in self._rings]
        self._batches = Batches()

    def append(self, rows: pa.RecordBatch, first: int) -> None:
        """Take rows whose ids count up from `first`, right behind those already here."""
        for place, ring in self._rings.items():
            ring.write(first, rows.column(place))
        if self._others and rows.num_rows:
            self._batches.append(rows.select(self._others), first)

    def forget(self, tail: int) -> None:
        """Rows below the id `tail` will not be asked for again."""
        self._batches.forget(tail)

    def resize(self, capacity: int, tail: int, head: int) -> None:
        """The window's ring has got another size; the rows from `tail` up to `head` are kept."""
        for ring in self._rings.values():
            ring.resize(capacity, tail, head)

    def take(self, places: Sequence[int], ids: Words) -> list[pa.Array]:
        """The values of the columns at some places, for rows in any order, repeated as asked."""
        if len(ids) == 0:
            return [pa.array([], self._kinds[place]) for place in places]
        others = [self._others.index(place) for place in places if place not in self._rings]
        taken = iter(self._batches.take(others, ids))
        return [self._rings[place].take(ids) if place in self._rings else next(taken) for place in places]

    def rows(self, ids: Words) -> pa.RecordBatch:
        """All columns of some rows."""
        columns = self.take(range(len(self._kinds)), ids)
        return pa.RecordBatch.from_arrays(columns, [str(place) for place in range(len(columns))])


class Ring:
    """A column of fixed width; `valid` appears with its first null."""

    def __init__(self, kind: pa.DataType, capacity: int) -> None:
        self._kind = kind
        self._values: np.ndarray[Any, Any] = np.full(capacity, 0, _ring_width(kind))
        self._valid: np.ndarray[Any, np.dtype[np.bool_]] | None = None

    def write(self, first: int, column: pa.Array) -> None:
        if len(column) == 0:
            return
        places = np.arange(first, first + len(column)) & (len(self._values) - 1)
        stored = np.frombuffer(column.buffers()[1], self._values.dtype)
        self._values[places] = stored[column.offset : column.offset + len(column)]
        if column.null_count and self._valid is None:
            self._valid = np.full(len(self._values), True)
        if self._valid is not None:
            self._valid[places] = column.is_valid().to_numpy(zero_copy_only=False)

    def take(self, ids: Words) -> pa.Array:
        places = ids & (len(self._values) - 1)
        bitmap = None
        if self._valid is not None:
            bitmap = pa.py_buffer(np.packbits(self._valid[places], bitorder="little"))
        return pa.Array.from_buffers(self._kind, len(ids), [bitmap, pa.py_buffer(self._values[places])])

    def resize(self, capacity: int, tail: int, head: int) -> None:
        kept = self.take(np.arange(tail, head))
        self._values = np.full(capacity, 0, self._values.dtype)
        self._valid = None
        self.write(tail, kept)


class Batches:
    """Columns of any type, in the batches they came in; small ones are merged as they gather."""

    def __init__(self) -> None:
        self._batches: list[pa.RecordBatch] = []
        self._firsts: list[int] = []

    def append(self, rows: pa.RecordBatch, first: int) -> None:
        self._batches.append(rows)
        self._firsts.append(first)
        # As in a log-structured store: batches grow towards the old end, so that their number stays small.
        while len(self._batches) > 1 and self._worth_merging(*self._batches[-2:]):
            newest = self._batches.pop()
            self._firsts.pop()
            self._batches[-1] = pa.concat_batches([self._batches[-1], newest])

    def _worth_merging(self, older: pa.RecordBatch, newer: pa.RecordBatch) -> bool:
        everything = self._firsts[-1] + newer.num_rows - self._firsts[0]
        largest = max(LEAST_MERGED, everything // MOST_BATCHES)
        return bool(older.num_rows <= 2 * newer.num_rows and older.num_rows + newer.num_rows <= largest)

    def forget(self, tail: int) -> None:
        while self._batches and self._firsts[0] + self._batches[0].num_rows <= tail:
            del self._batches[0], self._firsts[0]

    def take(self, columns: Sequence[int], ids: Words) -> list[pa.Array]:
        if not columns:
            return []
        if len(self._batches) == 1:
            places = pa.array(ids - self._firsts[0])
            return [self._batches[0].column(column).take(places) for column in columns]
        # Arrow would join all batches into one before it takes from them, whatever their size; so each is asked
        # for its own rows, and what they give is put in the order asked for.
        owners = (np.searchsorted(self._firsts, ids, side="right") - 1).astype(np.uint16)
        order = np.argsort(owners, kind="stable")
        bounds = np.searchsorted(owners[order], np.arange(len(self._batches) + 1))
        inverse = np.empty(len(ids), np.int64)
        inverse[order] = np.arange(len(ids))
        pieces: list[list[pa.Array]] = [[] for _ in columns]
        for owner, batch in enumerate(self._batches):
            own = pa.array(ids[order[bounds[owner] : bounds[owner + 1]]] - self._firsts[owner])
            for piece, column in zip(pieces, columns, strict=True):
                piece.append(batch.column(column).take(own))
        return [pa.concat_arrays(piece).take(pa.array(inverse)) for piece in pieces]


def _ring_width(kind: pa.DataType) -> type[np.signedinteger[Any]] | None:
    if not pa.types.is_primitive(kind) or pa.types.is_boolean(kind):
        return None
    return RING_WIDTHS.get(kind.bit_width)
