"""How the columns of a window are kept: each kind of column by row id, in memory of its own.

Numbers, dates and the like lie in rings beside the window's own, texts and bytes in one heap with a ring of places:
any row is one look away. Everything else stays in the Arrow batches it came in.
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
"""Numbers, texts, NumPy and Arrow arrays, None, and lists and dictionaries of them."""
Bytes = np.ndarray[tuple[int], np.dtype[np.uint8]]

RING_WIDTHS: dict[int, type[np.signedinteger[Any]]] = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}
SMALLEST_HEAP = 1 << 12
WORD = 8
"""Values in a heap begin at multiples of so many bytes and are filled up with zeros, to be compared word by word."""

PLACE, LENGTH = 0, 1
"""The two numbers a heap keeps of each value, side by side: one look in memory gets both."""
LEAST_MERGED = 1 << 16
MOST_ARRAYS = 8
"""Arrays are merged while they are small, or while they hold less than one part in this many of all rows."""


class ColumnStore(Protocol):
    """A column of a window, read and written by row id."""

    def write(self, first: int, values: pa.Array) -> None:
        """Take values of rows whose ids count up from `first`."""

    def take(self, ids: Words) -> pa.Array:
        """The values of rows in any order, repeated as asked."""

    def forget(self, tail: int) -> None:
        """Rows below the id `tail` will not be asked for again."""

    def resize(self, capacity: int, tail: int, head: int) -> None:
        """The window's rings have got another size; rows from `tail` up to `head` are kept."""

    def state(self) -> State:
        """All there is to know, to be given to `load` of another column of the same type."""

    def load(self, state: State) -> None:
        """Go on where the other column was; its arrays are used as they are, not copied."""


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
    """Which values of a ring are not null; it takes no room until the first null comes."""

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

    def bitmap(self, places: Words) -> pa.Buffer | None:
        if self._valid is None:
            return None
        return pa.py_buffer(np.packbits(self._valid[places], bitorder="little"))


class Ring:
    """Values of fixed width: numbers, or so many words each."""

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
        places = ids & (len(self.values) - 1)
        buffers = [self._validity.bitmap(places), pa.py_buffer(self.values[places])]
        return pa.Array.from_buffers(self._kind, len(ids), buffers)

    def forget(self, tail: int) -> None:
        pass

    def resize(self, capacity: int, tail: int, head: int) -> None:
        kept = self.take(np.arange(tail, head))
        self._clear(capacity)
        self.write(tail, kept)

    def state(self) -> State:
        return {"values": self.values, "valid": self._validity.state()}

    def load(self, state: State) -> None:
        self.values = state["values"]
        self._validity.load(state["valid"], len(self.values))


class Heap:
    """Texts or bytes, one behind the other as they came, so that the oldest lie at the front.

    Places count from the beginning of time; `_base` is the place of the first byte that is still here.
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
        places = np.zeros(len(values) + 1, np.int64)
        np.cumsum(-(-lengths // WORD) * WORD, out=places[1:])
        size = int(places[-1])
        self._make_room(size)
        if size:
            start = self._end - self._base
            _lay_bytes(np.frombuffer(data, np.uint8), bounds, places, self._bytes[start : start + size])
        ring.write(self._spans, first, np.stack([places[:-1] + self._end, lengths], axis=1))
        self._validity.write(first, values)
        self._end += size
        self._head = first + len(values)

    def take(self, ids: Words) -> pa.Array:
        return self.take_large(ids).cast(self._kind)

    def take_large(self, ids: Words) -> pa.Array:
        """The values in the type that holds more than two gigabytes of them."""
        rows = ids & (len(self._spans) - 1)
        spans = self._spans[rows]
        bounds = np.zeros(len(ids) + 1, np.int64)
        np.cumsum(spans[:, LENGTH], out=bounds[1:])
        taken = np.empty(int(bounds[-1]), np.uint8)
        _copy_bytes(self._bytes, spans[:, PLACE] - self._base, bounds, taken)
        buffers = [self._validity.bitmap(rows), pa.py_buffer(bounds), pa.py_buffer(taken)]
        return pa.Array.from_buffers(_large(self._kind), len(ids), buffers)

    def equals(self, ids: Words, other: Heap, other_ids: Words) -> Flags:
        """Where a value equals another of this or another heap; neither may be null."""
        same = np.empty(len(ids), np.bool_)
        heap, other_heap = self._bytes.view(np.int64), other._bytes.view(np.int64)
        _compare_words(ids, heap, self._spans, self._base, other_ids, other_heap, other._spans, other._base, same)
        return same

    def forget(self, tail: int) -> None:
        self._tail = tail

    def resize(self, capacity: int, tail: int, head: int) -> None:
        kept = self.take_large(np.arange(tail, head))
        self._clear(capacity)
        self._tail = tail
        self.write(tail, kept)

    def state(self) -> State:
        scalars = {"base": self._base, "end": self._end, "tail": self._tail, "head": self._head}
        return {**scalars, "bytes": self._bytes, "spans": self._spans, "valid": self._validity.state()}

    def load(self, state: State) -> None:
        self._base, self._end, self._tail, self._head = (state[name] for name in ("base", "end", "tail", "head"))
        self._bytes, self._spans = state["bytes"], state["spans"]
        self._validity.load(state["valid"], len(self._spans))

    def _make_room(self, size: int) -> None:
        """Move what is alive to the front; into a larger heap if it would not leave room for as much again."""
        if self._end - self._base + size <= len(self._bytes):
            return
        first = self._tail & (len(self._spans) - 1)
        oldest = int(self._spans[first, PLACE]) if self._tail < self._head else self._end
        alive = self._bytes[oldest - self._base : self._end - self._base]
        if 2 * (len(alive) + size) > len(self._bytes):
            larger = np.zeros(1 << (2 * (len(alive) + size)).bit_length(), np.uint8)
            larger[: len(alive)] = alive
            self._bytes = larger
        else:
            self._bytes[: len(alive)] = alive.copy()
        self._base = oldest


class Batches:
    """Values of any type, in the arrays they came in; small ones are merged as they gather."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self._arrays: list[pa.Array] = []
        self._firsts: list[int] = []

    def write(self, first: int, values: pa.Array) -> None:
        if len(values) == 0:
            return
        self._arrays.append(values)
        self._firsts.append(first)
        # As in a log-structured store: arrays grow towards the old end, so that their number stays small.
        while len(self._arrays) > 1 and self._worth_merging(*self._arrays[-2:]):
            newest = self._arrays.pop()
            self._firsts.pop()
            self._arrays[-1] = pa.concat_arrays([self._arrays[-1], newest])

    def _worth_merging(self, older: pa.Array, newer: pa.Array) -> bool:
        everything = self._firsts[-1] + len(newer) - self._firsts[0]
        largest = max(LEAST_MERGED, everything // MOST_ARRAYS)
        return len(older) <= 2 * len(newer) and len(older) + len(newer) <= largest

    def take(self, ids: Words) -> pa.Array:
        if len(ids) == 0:
            return pa.array([], self._kind)
        if len(self._arrays) == 1:
            return self._arrays[0].take(pa.array(ids - self._firsts[0]))
        # Arrow would join all arrays into one before it takes from them, whatever their size; so each is asked for
        # its own rows, and what they give is put in the order asked for.
        owners = (np.searchsorted(self._firsts, ids, side="right") - 1).astype(np.uint16)
        order = np.argsort(owners, kind="stable")
        bounds = np.searchsorted(owners[order], np.arange(len(self._arrays) + 1))
        pieces = [
            array.take(pa.array(ids[order[bounds[owner] : bounds[owner + 1]]] - self._firsts[owner]))
            for owner, array in enumerate(self._arrays)
        ]
        inverse = np.empty(len(ids), np.int64)
        inverse[order] = np.arange(len(ids))
        return pa.concat_arrays(pieces).take(pa.array(inverse))

    def forget(self, tail: int) -> None:
        while self._arrays and self._firsts[0] + len(self._arrays[0]) <= tail:
            del self._arrays[0], self._firsts[0]

    def resize(self, capacity: int, tail: int, head: int) -> None:
        pass

    def state(self) -> State:
        return {"arrays": list(self._arrays), "firsts": list(self._firsts)}

    def load(self, state: State) -> None:
        self._arrays, self._firsts = list(state["arrays"]), list(state["firsts"])


def _large(kind: pa.DataType) -> pa.DataType:
    """The same type with offsets of 64 bits."""
    return pa.large_binary() if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) else pa.large_string()


@compiled
def _copy_bytes(heap: Bytes, starts: Words, bounds: Words, taken: Bytes) -> None:
    """Lay values from anywhere in the heap one behind the other."""
    for row in range(len(starts)):
        place = starts[row]
        for byte in range(bounds[row], bounds[row + 1]):
            taken[byte] = heap[place]
            place += 1


@compiled
def _lay_bytes(values: Bytes, bounds: Words, places: Words, heap: Bytes) -> None:
    """Lay values at the places given for them, zeros up to the next."""
    for row in range(len(bounds) - 1):
        place = places[row]
        for byte in range(bounds[row], bounds[row + 1]):
            heap[place] = values[byte]
            place += 1
        for rest in range(place, places[row + 1]):
            heap[rest] = 0


@compiled
def _compare_words(
    ids: Words, heap: Words, spans: Records, base: int,
    other_ids: Words, other_heap: Words, other_spans: Records, other_base: int, same: Flags,
) -> None:  # fmt: skip
    """Set `same` where the value of an id in one heap is that of another id in another."""
    mask, other_mask = len(spans) - 1, len(other_spans) - 1
    for row in range(len(ids)):
        ours, theirs = ids[row] & mask, other_ids[row] & other_mask
        length = spans[ours, LENGTH]
        equal = length == other_spans[theirs, LENGTH]
        if equal:
            start = (spans[ours, PLACE] - base) >> 3
            other_start = (other_spans[theirs, PLACE] - other_base) >> 3
            for word in range((length + WORD - 1) >> 3):
                equal &= heap[start + word] == other_heap[other_start + word]
        same[row] = equal
