"""Windows that count rows: a row ends when the n-th row after it comes, in its stream or its partition."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from braid.engine.chain import NOBODY
from braid.engine.compiled import Words
from braid.engine.hashing import order_words
from braid.model.window import FOREVER, Rows


class RowCounter:
    """Knows which rows of one stream are still open, and closes them as others come in event-time order."""

    def __init__(self, window: Rows) -> None:
        self._count = window.count
        self._partition_by = window.partition_by
        self._codes_of_values: list[dict[object, int]] = [{} for _ in window.partition_by]
        self._codes_of_keys: dict[tuple[int, ...], int] = {}
        self._open_ids = np.empty(0, np.int64)
        self._open_codes = np.empty(0, np.int64)

    def advance(self, rows: pa.RecordBatch, times: Words) -> tuple[Words, Words, Words]:
        """New rows, in event-time order, come behind all earlier ones.

        Returns their ends (FOREVER for those still open), and ids and ends of earlier rows that they close.
        `enter` must follow, with the ids the new rows got.
        """
        codes = self._partition_codes(rows)
        touched = np.isin(self._open_codes, codes)
        older = self._open_ids[touched]
        all_codes = np.concatenate([self._open_codes[touched], codes])
        ends = np.full(len(all_codes), FOREVER)
        order = np.argsort(all_codes, kind="stable")
        closed, closing = order[: -self._count], order[self._count :]
        together = all_codes[closed] == all_codes[closing]
        # Of each partition no more than `count` earlier rows are open, so what closes a row is always a new one.
        ends[closed[together]] = times[closing[together] - len(older)]
        older_ends, new_ends = ends[: len(older)], ends[len(older) :]
        known = older_ends != FOREVER
        self._still_open = np.ones(len(self._open_ids), bool)
        self._still_open[np.flatnonzero(touched)[known]] = False
        self._new_open, self._new_codes = new_ends == FOREVER, codes
        kept = known & (older != NOBODY)
        return new_ends, older[kept], older_ends[kept]

    def enter(self, ids: Words) -> None:
        """The ids of the rows last taken, in the same order; NOBODY for rows that a selection has left out."""
        self._open_ids = np.concatenate([self._open_ids[self._still_open], ids[self._new_open]])
        self._open_codes = np.concatenate([self._open_codes[self._still_open], self._new_codes[self._new_open]])

    def rename(self, change: Callable[[Words], Words]) -> None:
        """The window has given its rows new ids."""
        present = self._open_ids != NOBODY
        self._open_ids[present] = change(self._open_ids[present])

    def _partition_codes(self, rows: pa.RecordBatch) -> Words:
        """A number for the partition of each row; rows whose keys are null form one as well."""
        if not self._partition_by:
            return np.zeros(rows.num_rows, np.int64)
        parts = [
            self._value_codes(rows.column(name), codes)
            for name, codes in zip(self._partition_by, self._codes_of_values, strict=True)
        ]
        if len(parts) == 1:
            return parts[0]
        keys, inverse = np.unique(np.stack(parts, axis=1), axis=0, return_inverse=True)
        known = self._codes_of_keys
        codes = [known.setdefault(tuple(key), len(known)) for key in keys.tolist()]
        return np.array(codes, np.int64)[inverse.reshape(-1)]

    @staticmethod
    def _value_codes(column: pa.Array, known: dict[object, int]) -> Words:
        if pa.types.is_floating(column.type):
            words = pa.array(order_words(column))
            column = pc.if_else(column.is_valid(), words, pa.scalar(None, pa.int64()))
        elif pa.types.is_temporal(column.type):
            column = column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())
        elif pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        elif pa.types.is_decimal(column.type) or pa.types.is_null(column.type):
            column = column.cast(pa.string())
        encoded = column.dictionary_encode("encode")
        codes = [known.setdefault(value, len(known)) for value in encoded.dictionary.to_pylist()]
        numbered: Words = np.array(codes, np.int64)[encoded.indices.to_numpy(zero_copy_only=False)]
        return numbered


def in_event_order(rows: pa.RecordBatch, times: Words) -> Words:
    """The order of rows by event time, and by column values where times are equal (nulls first, NaN last)."""
    order = np.argsort(times, kind="stable")
    if not (np.diff(times[order]) == 0).any():
        return order
    columns = {"": pa.array(times)} | {
        str(place): sortable for place, column in enumerate(rows.columns) for sortable in [_sortable(column)]
    }
    keys = [(name, "ascending", "at_start") for name in columns]
    ranked: Words = pc.sort_indices(pa.table(columns), keys).to_numpy().astype(np.int64)
    return ranked


def _sortable(column: pa.Array) -> pa.Array:
    """A column that Arrow can sort and that sorts as this one is meant to."""
    kind = column.type
    if pa.types.is_floating(kind):
        return pc.if_else(column.is_valid(), pa.array(order_words(column)), pa.scalar(None, pa.int64()))
    if pa.types.is_dictionary(kind):
        return _sortable(column.dictionary_decode())
    if pa.types.is_string_view(kind) or pa.types.is_string(kind):
        return column.cast(pa.large_string())
    if pa.types.is_binary_view(kind):
        return column.cast(pa.large_binary())
    if pa.types.is_nested(kind) or pa.types.is_null(kind) or pa.types.is_interval(kind):
        # Arrow does not order these; their text does, the same way each time.
        return pa.array([None if value is None else repr(value) for value in column.to_pylist()], pa.large_string())
    return column
