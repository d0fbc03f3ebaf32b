"""The window of one stream: its live rows, and the indexes that other streams probe."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from braid.engine.arrays import ring
from braid.engine.arrays.columns import State
from braid.engine.arrays.jit import Records, Words
from braid.engine.arrays.payload import Payload
from braid.engine.keys.hashing import FULL_HASH, combine_words
from braid.engine.window import chain

SMALLEST_CAPACITY = 1 << 10
"""The number of slots of a new window."""

KeyClasses = tuple[int, ...]
"""What an index is on: the numbers of attribute classes, or that of a band, or those of classes and then of a band."""


@dataclass(frozen=True, slots=True)
class KeyedRows:
    """Rows ready for a window: lifetimes, a word per attribute class and band, and the columns to keep."""

    starts: Words
    ends: Words
    words: dict[int, Words]
    payload: pa.RecordBatch

    def __len__(self) -> int:
        return len(self.starts)

    def take(self, positions: Words) -> KeyedRows:
        words = {class_number: words[positions] for class_number, words in self.words.items()}
        payload = self.payload.take(pa.array(positions)) if self.payload.num_columns else self.payload
        return KeyedRows(self.starts[positions], self.ends[positions], words, payload)


@dataclass(slots=True)
class Index:
    """An index over the rows of a window, by the words of `classes` (see `chain`)."""

    classes: KeyClasses
    buckets: Words
    records: Records


@dataclass(frozen=True, slots=True)
class Renaming:
    """The live rows of a window have got new ids from `first` on, in the order of their `old_ids`, which ascend."""

    old_ids: Words
    first: int

    def __call__(self, ids: Words) -> Words:
        """The new ids of rows; NO_ROW for rows that are gone."""
        if not len(self.old_ids):
            return np.full(len(ids), chain.NO_ROW)
        positions = np.minimum(np.searchsorted(self.old_ids, ids), len(self.old_ids) - 1)
        return np.where(self.old_ids[positions] == ids, self.first + positions, chain.NO_ROW)

    def bound(self, limit: int) -> int:
        """The new limit of ids: below it are the rows whose old ids were below `limit`."""
        return self.first + int(np.searchsorted(self.old_ids, limit))


class WindowState:
    """Rows in rings, by ever-growing id; the window holds the ids from `tail` to just before `next_id`.

    `classes` and `exact` are numbers of attribute classes; words of an exact class stand for one value each. `kinds`
    are the types of the payload. `grains` are those of the bands, by number; the window has words for these, too.
    """

    def __init__(
        self,
        classes: Iterable[int],
        exact: frozenset[int],
        kinds: Sequence[pa.DataType],
        bits: int = FULL_HASH,
        grains: Mapping[int, int] | None = None,
    ) -> None:
        self.next_id = 0
        self.tail = 0
        self.starts: Words
        self.ends: Words
        self._words: dict[int, Words]
        self._exact = exact
        self._bits = bits
        self._grains = dict(grains or {})
        self._classes = (*classes, *self._grains)
        self._indexes: dict[KeyClasses, Index] = {}
        self.payload = Payload(kinds, SMALLEST_CAPACITY)
        self._allocate(SMALLEST_CAPACITY)

    def __len__(self) -> int:
        return self.next_id - self.tail

    @property
    def capacity(self) -> int:
        return len(self.starts)

    @property
    def mask(self) -> int:
        return self.capacity - 1

    @property
    def shift(self) -> int:
        return 64 - self.mask.bit_length()

    def index(self, classes: KeyClasses) -> Index:
        """The index on some attribute classes, a band, or both; it is built at the first use."""
        if classes not in self._indexes:
            self._indexes[classes] = index = Index(classes, *_empty_index(self.capacity))
            words = {key_number: ring.read(self._words[key_number], self.tail, self.next_id) for key_number in classes}
            self._insert(index, self.tail, *self.lifetimes(self.tail, self.next_id), words)
        return self._indexes[classes]

    def has_index(self, classes: KeyClasses) -> bool:
        return classes in self._indexes

    def index_key(self, classes: KeyClasses, words: Sequence[Words]) -> Words:
        """The keys of an index, given the words of each of its classes.

        In the index of keys and a band, the words of the band are moved by a hash of the keys. Rows of one key stay as
        far apart as they are, and rows of different keys are moved far apart.
        """
        if classes[-1] in self._grains:
            return words[-1] if len(classes) == 1 else words[-1] + combine_words(words[:-1], self._bits)
        if len(classes) == 1 and (self._bits == FULL_HASH or classes[0] not in self._exact):
            return words[0]
        return combine_words(words, self._bits)

    def is_exact(self, classes: KeyClasses) -> bool:
        """Whether rows with equal keys in this index are certain to have equal values."""
        return len(classes) == 1 and classes[0] in self._exact and self._bits == FULL_HASH

    def append(self, rows: KeyedRows) -> int:
        """Add rows; returns the id of the first of them."""
        first = self.extend(rows.starts, rows.ends, rows.words)
        self.payload.append(rows.payload, first)
        return first

    def extend(self, starts: Words, ends: Words, words: Mapping[int, Words]) -> int:
        """As `append`, but the caller writes the payload of the rows."""
        self._make_room(len(starts))
        first = self.next_id
        self._write(first, starts, ends, words)
        self.next_id += len(starts)
        return first

    def forget(self, horizon: int) -> None:
        """Remove rows that end at or before `horizon`, up to the first that does not."""
        self.tail = chain.first_alive(self.ends, self.mask, self.tail, self.next_id, horizon)
        self.payload.forget(self.tail)

    def close(self, ids: Words, ends: Words) -> None:
        """Set the ends of rows, in a window that counts rows."""
        ids, ends = ids[ids >= self.tail], ends[ids >= self.tail]
        chain.set_ends(ids, ends, self.ends, self.mask)
        for index in self._indexes.values():
            index.records[ids & self.mask, chain.END] = ends

    def words(self, class_number: int, ids: Words) -> Words:
        """The words of an attribute class or a band, for rows in any order."""
        words: Words = self._words[class_number][ids & self.mask]
        return words

    def word_stretches(self, class_number: int, first: int, last: int) -> Iterator[Words]:
        """The words of a class for the rows from `first` up to `last`, not copied: one stretch of the ring, or two."""
        for slots, _ in ring.stretches(first, last - first, self.capacity):
            yield self._words[class_number][slots]

    def lifetimes(self, first: int, last: int) -> tuple[Words, Words]:
        """Starts and ends of the rows from `first` up to `last`."""
        return ring.read(self.starts, first, last), ring.read(self.ends, first, last)

    def compact(self, horizon: int) -> Renaming | None:
        """If at least half of the rows have ended by `horizon`, give the live ones new ids and remove the others.

        `forget` alone cannot remove rows behind one that lives on. Returns how ids have changed; None if they have not.
        """
        starts, ends = self.lifetimes(self.tail, self.next_id)
        alive = np.flatnonzero(ends > horizon)
        if len(alive) * 2 > len(self):
            return None
        old_ids = self.tail + alive
        words = {key_number: self.words(key_number, old_ids) for key_number in self._classes}
        rows = KeyedRows(starts[alive], ends[alive], words, self.payload.rows(old_ids))
        self.tail = self.next_id
        self.payload.forget(self.tail)
        return Renaming(old_ids, self.append(rows))

    def state(self) -> State:
        """The whole state, for `load` of another window of the same stream."""
        return {
            "next_id": self.next_id,
            "tail": self.tail,
            "starts": self.starts,
            "ends": self.ends,
            "words": {str(key_number): words for key_number, words in self._words.items()},
            "indexes": [[list(index.classes), index.buckets, index.records] for index in self._indexes.values()],
            "payload": self.payload.state(),
        }

    def load(self, state: State) -> None:
        """Continue from the state of another window; its arrays are used as they are, not copied."""
        self.next_id, self.tail = state["next_id"], state["tail"]
        self.starts, self.ends = state["starts"], state["ends"]
        self._words = {int(key_number): words for key_number, words in state["words"].items()}
        self._indexes = {
            tuple(classes): Index(tuple(classes), buckets, records) for classes, buckets, records in state["indexes"]
        }
        self.payload.load(state["payload"])

    def _make_room(self, count: int) -> None:
        needed = len(self) + count
        if needed <= self.capacity:
            return
        starts, ends = self.lifetimes(self.tail, self.next_id)
        words = {
            key_number: ring.read(self._words[key_number], self.tail, self.next_id) for key_number in self._classes
        }
        # An eighth more than needed, so that a window that has just grown does not grow again soon.
        self._allocate(1 << (needed + needed // 8).bit_length())
        self._write(self.tail, starts, ends, words)
        self.payload.resize(self.capacity, self.tail, self.next_id)

    def _allocate(self, capacity: int) -> None:
        self.starts = np.full(capacity, 0, np.int64)
        self.ends = np.full(capacity, 0, np.int64)
        self._words = {key_number: np.full(capacity, 0, np.int64) for key_number in self._classes}
        for index in self._indexes.values():
            index.buckets, index.records = _empty_index(capacity)

    def _write(self, first: int, starts: Words, ends: Words, words: Mapping[int, Words]) -> None:
        ring.write(self.starts, first, starts)
        ring.write(self.ends, first, ends)
        for key_number, word in words.items():
            ring.write(self._words[key_number], first, word)
        for index in self._indexes.values():
            self._insert(index, first, starts, ends, words)

    def _insert(self, index: Index, first: int, starts: Words, ends: Words, words: Mapping[int, Words]) -> None:
        keys = self.index_key(index.classes, [words[key_number] for key_number in index.classes])
        grain = self._grains.get(index.classes[-1], 0)
        chain.insert(keys, starts, ends, first, grain, index.buckets, index.records, self.mask, self.shift)


def _empty_index(capacity: int) -> tuple[Words, Records]:
    return np.full(capacity, chain.NO_ROW, np.int64), np.full((capacity, 4), 0, np.int64)
