"""The columns of a payload: each is stored by row id, in memory of its own.

Values of fixed width, such as numbers and dates, lie in a ring like those of the window (`Ring`). Texts and bytes lie
in one heap, with a ring of their offsets and lengths (`Heap`). All other values stay in the Arrow arrays they came in
(`Batches`).
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from braid.engine.arrays import ring
from braid.engine.arrays.jit import Records, Words, compiled

Flags = np.ndarray[Any, np.dtype[np.bool_]]
State = dict[str, Any]
"""Numbers, texts, NumPy and Arrow arrays, None, and lists and dictionaries of these."""

Bytes = np.ndarray[tuple[int], np.dtype[np.uint8]]

RING_WIDTHS: dict[int, type[np.signedinteger[Any]]] = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}
"""The integer type of a ring's slots, by the width of its values in bits."""

SMALLEST_HEAP = 1 << 12
"""The size of a new heap in bytes."""

WORD = 8
"""Bytes in a word. Values in a heap begin at whole words and are padded with zeros, so they are compared by word."""

OFFSET, LENGTH = 0, 1
"""The columns of a heap's spans: where a value begins, and its length in bytes. One cache miss loads both."""

SMALL_ARRAY = 1 << 16
"""Neighbouring arrays that have at most this many rows together may be merged, however few rows there are in all."""

MOST_ARRAYS = 8
"""Larger neighbours may be merged if they have at most one in this many of all rows."""


class ColumnStore(Protocol):
    """A column of a window, read and written by row id."""

    def write(self, first: int, values: pa.Array) -> None:
        """Write the values of rows with ids from `first` on."""

    def take(self, ids: Words) -> pa.Array:
        """The values of rows, in any order and with repetitions."""

    def forget(self, tail: int) -> None:
        """Rows below the id `tail` will not be read again."""

    def resize(self, capacity: int, tail: int, next_id: int) -> None:
        """Follow a window that resizes its rings; the rows from `tail` up to `next_id` are kept."""

    def state(self) -> State:
        """The whole state, for `load` of another column of the same type."""

    def load(self, state: State) -> None:
        """Continue from the state of another column; its arrays are used as they are, not copied."""


def column_of(kind: pa.DataType, capacity: int) -> ColumnStore:
    """An empty column for values of a type."""
    if pa.types.is_primitive(kind) and kind.bit_width in RING_WIDTHS:
        return Ring(kind, capacity)
    if pa.types.is_fixed_size_binary(kind) and kind.byte_width and kind.byte_width % WORD == 0:
        return Ring(kind, capacity, words=kind.byte_width // WORD)
    if kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary()):
        return Heap(kind, capacity)
    return Batches(kind)


class Validity:
    """Which values of a ring are not null; uses no memory until the first null comes."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._valid: Flags | None = None

    def write(self, first: int, values: pa.Array) -> None:
        if values.null_count and self._valid is None:
            self._valid = np.full(self._capacity, True)
        if self._valid is not None:
            ring.write(self._valid, first, values.is_valid().to_numpy(zero_copy_only=False))

    def state(self) -> Flags | None:
        return self._valid

    def load(self, valid: Flags | None, capacity: int) -> None:
        self._capacity, self._valid = capacity, valid

    def bitmap(self, slots: Words) -> pa.Buffer | None:
        """The validity bitmap of an Arrow array with the values in these slots."""
        if self._valid is None:
            return None
        return pa.py_buffer(np.packbits(self._valid[slots], bitorder="little"))


class Ring:
    """Values of fixed width: one integer each, or `words` 64-bit words each."""

    def __init__(self, kind: pa.DataType, capacity: int, words: int | None = None) -> None:
        self._kind = kind
        self._type = np.int64 if words else RING_WIDTHS[kind.bit_width]
        self._shape = (words,) if words else ()
        self._clear(capacity)

    def _clear(self, capacity: int) -> None:
        self.values: np.ndarray[Any, Any] = np.full((capacity, *self._shape), 0, self._type)
        self._validity = Validity(capacity)

    def write(self, first: int, values: pa.Array) -> None:
        if len(values) == 0:
            return
        last = values.offset + len(values)
        stored = np.frombuffer(values.buffers()[1], self._type, last * math.prod(self._shape))
        ring.write(self.values, first, stored.reshape(last, *self._shape)[values.offset :])
        self._validity.write(first, values)

    def take(self, ids: Words) -> pa.Array:
        slots = ids & (len(self.values) - 1)
        buffers = [self._validity.bitmap(slots), pa.py_buffer(self.values[slots])]
        return pa.Array.from_buffers(self._kind, len(ids), buffers)

    def forget(self, tail: int) -> None:
        pass

    def resize(self, capacity: int, tail: int, next_id: int) -> None:
        values = self.take(np.arange(tail, next_id))
        self._clear(capacity)
        self.write(tail, values)

    def state(self) -> State:
        return {"values": self.values, "valid": self._validity.state()}

    def load(self, state: State) -> None:
        self.values = state["values"]
        self._validity.load(state["valid"], len(self.values))


class Heap:
    """Texts or bytes, one after the other as they came, so that the oldest lie at the front.

    Offsets count all bytes ever written; `_base` is the offset of the first byte that is still here, `_end` the next
    free one.
    """

    def __init__(self, kind: pa.DataType, capacity: int) -> None:
        self._kind = kind
        self._clear(capacity)

    def _clear(self, capacity: int) -> None:
        self._bytes: Bytes = np.zeros(SMALLEST_HEAP, np.uint8)
        self._base = 0
        self._end = 0
        self._tail = 0
        self._head = 0
        self._spans: Records = np.full((capacity, 2), 0, np.int64)
        self._validity = Validity(capacity)

    def write(self, first: int, values: pa.Array) -> None:
        if len(values) == 0:
            return
        stored = values.cast(_large(self._kind))
        _, offsets, data = stored.buffers()
        bounds = np.frombuffer(offsets, np.int64)[stored.offset : stored.offset + len(values) + 1]
        lengths = np.diff(bounds)
        padded_lengths = -(-lengths // WORD) * WORD
        offsets_in_piece = np.zeros(len(values) + 1, np.int64)
        np.cumsum(padded_lengths, out=offsets_in_piece[1:])
        size = int(offsets_in_piece[-1])
        self._make_room(size)
        if size:
            start = self._end - self._base
            _write_padded(np.frombuffer(data, np.uint8), bounds, offsets_in_piece, self._bytes[start : start + size])
        ring.write(self._spans, first, np.stack([offsets_in_piece[:-1] + self._end, lengths], axis=1))
        self._validity.write(first, values)
        self._end += size
        self._head = first + len(values)

    def take(self, ids: Words) -> pa.Array:
        return self.take_large(ids).cast(self._kind)

    def take_large(self, ids: Words) -> pa.Array:
        """The values in the variant of their type that can hold more than two gigabytes."""
        slots = ids & (len(self._spans) - 1)
        spans = self._spans[slots]
        bounds = np.zeros(len(ids) + 1, np.int64)
        np.cumsum(spans[:, LENGTH], out=bounds[1:])
        data = np.empty(int(bounds[-1]), np.uint8)
        _copy_bytes(self._bytes, spans[:, OFFSET] - self._base, bounds, data)
        buffers = [self._validity.bitmap(slots), pa.py_buffer(bounds), pa.py_buffer(data)]
        return pa.Array.from_buffers(_large(self._kind), len(ids), buffers)

    def equals(self, ids: Words, other: Heap, other_ids: Words) -> Flags:
        """Whether values equal values of another heap, row by row; none may be null."""
        same = np.empty(len(ids), np.bool_)
        heap, other_heap = self._bytes.view(np.int64), other._bytes.view(np.int64)
        _compare_words(ids, heap, self._spans, self._base, other_ids, other_heap, other._spans, other._base, same)
        return same

    def forget(self, tail: int) -> None:
        self._tail = tail

    def resize(self, capacity: int, tail: int, next_id: int) -> None:
        values = self.take_large(np.arange(tail, next_id))
        self._clear(capacity)
        self._tail = tail
        self.write(tail, values)

    def state(self) -> State:
        scalars = {"base": self._base, "end": self._end, "tail": self._tail, "head": self._head}
        return {**scalars, "bytes": self._bytes, "spans": self._spans, "valid": self._validity.state()}

    def load(self, state: State) -> None:
        self._base, self._end, self._tail, self._head = (state[name] for name in ("base", "end", "tail", "head"))
        self._bytes, self._spans = state["bytes"], state["spans"]
        self._validity.load(state["valid"], len(self._spans))

    def _make_room(self, size: int) -> None:
        """Move live values to the front; into a larger heap if they and `size` bytes would fill more than half."""
        if self._end - self._base + size <= len(self._bytes):
            return
        oldest_slot = self._tail & (len(self._spans) - 1)
        oldest = int(self._spans[oldest_slot, OFFSET]) if self._tail < self._head else self._end
        alive = self._bytes[oldest - self._base : self._end - self._base]
        if 2 * (len(alive) + size) > len(self._bytes):
            larger = np.zeros(1 << (2 * (len(alive) + size)).bit_length(), np.uint8)
            larger[: len(alive)] = alive
            self._bytes = larger
        else:
            self._bytes[: len(alive)] = alive.copy()
        self._base = oldest


class Batches:
    """Values of any type, in the arrays they came in; small neighbouring arrays are merged."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self._arrays: list[pa.Array] = []
        self._firsts: list[int] = []

    def write(self, first: int, values: pa.Array) -> None:
        if len(values) == 0:
            return
        self._arrays.append(values)
        self._firsts.append(first)
        # As in a log-structured store: older arrays are larger, so that there are few of them.
        while len(self._arrays) > 1 and self._worth_merging(*self._arrays[-2:]):
            newest = self._arrays.pop()
            self._firsts.pop()
            self._arrays[-1] = pa.concat_arrays([self._arrays[-1], newest])

    def _worth_merging(self, older: pa.Array, newer: pa.Array) -> bool:
        rows = self._firsts[-1] + len(newer) - self._firsts[0]
        largest = max(SMALL_ARRAY, rows // MOST_ARRAYS)
        return len(older) <= 2 * len(newer) and len(older) + len(newer) <= largest

    def take(self, ids: Words) -> pa.Array:
        if len(ids) == 0:
            return pa.array([], self._kind)
        if len(self._arrays) == 1:
            return self._arrays[0].take(pa.array(ids - self._firsts[0]))
        # Arrow's take on a chunked array would concatenate all arrays first, whatever their size. So rows are taken
        # from each array on its own, and then put into the order asked for.
        array_numbers = (np.searchsorted(self._firsts, ids, side="right") - 1).astype(np.uint16)
        order = np.argsort(array_numbers, kind="stable")
        bounds = np.searchsorted(array_numbers[order], np.arange(len(self._arrays) + 1))
        pieces = []
        for array_number, array in enumerate(self._arrays):
            own_ids = ids[order[bounds[array_number] : bounds[array_number + 1]]]
            pieces.append(array.take(pa.array(own_ids - self._firsts[array_number])))
        inverse = np.empty(len(ids), np.int64)
        inverse[order] = np.arange(len(ids))
        return pa.concat_arrays(pieces).take(pa.array(inverse))

    def forget(self, tail: int) -> None:
        while self._arrays and self._firsts[0] + len(self._arrays[0]) <= tail:
            del self._arrays[0], self._firsts[0]

    def resize(self, capacity: int, tail: int, next_id: int) -> None:
        pass

    def state(self) -> State:
        return {"arrays": list(self._arrays), "firsts": list(self._firsts)}

    def load(self, state: State) -> None:
        self._arrays, self._firsts = list(state["arrays"]), list(state["firsts"])


def _large(kind: pa.DataType) -> pa.DataType:
    """The variant of a type with 64-bit offsets."""
    return pa.large_binary() if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) else pa.large_string()


@compiled
def _copy_bytes(heap: Bytes, starts: Words, bounds: Words, data: Bytes) -> None:
    """Copy values from anywhere in the heap to `data`, one after the other."""
    for row in range(len(starts)):
        offset = starts[row]
        for byte in range(bounds[row], bounds[row + 1]):
            data[byte] = heap[offset]
            offset += 1


@compiled
def _write_padded(values: Bytes, bounds: Words, offsets: Words, heap: Bytes) -> None:
    """Write values to the heap at their offsets, with zeros up to the next offset."""
    for row in range(len(bounds) - 1):
        offset = offsets[row]
        for byte in range(bounds[row], bounds[row + 1]):
            heap[offset] = values[byte]
            offset += 1
        for padding in range(offset, offsets[row + 1]):
            heap[padding] = 0


@compiled
def _compare_words(
    ids: Words, heap: Words, spans: Records, base: int,
    other_ids: Words, other_heap: Words, other_spans: Records, other_base: int, same: Flags,
) -> None:  # fmt: skip
    """Set `same` where the values of two ids, in two heaps, are equal."""
    mask, other_mask = len(spans) - 1, len(other_spans) - 1
    for row in range(len(ids)):
        ours, theirs = ids[row] & mask, other_ids[row] & other_mask
        length = spans[ours, LENGTH]
        equal = length == other_spans[theirs, LENGTH]
        if equal:
            start = (spans[ours, OFFSET] - base) >> 3
            other_start = (other_spans[theirs, OFFSET] - other_base) >> 3
            for word in range((length + WORD - 1) >> 3):
                equal &= heap[start + word] == other_heap[other_start + word]
        same[row] = equal
