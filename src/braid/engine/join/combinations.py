"""Combinations of rows, one row per stream joined so far, on their way through a sequence of joins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from braid.engine.arrays.jit import Records, Words
from braid.engine.arrays.ring import write_column
from braid.engine.window.window_state import WindowState


class Side(Protocol):
    """What a join probes: the rows of one stream, or the combinations of a join state. Both are entries of a window."""

    @property
    def aliases(self) -> tuple[str, ...]:
        """The streams whose rows the entries combine."""

    @property
    def window(self) -> WindowState:
        """The window that holds the entries."""

    def by_stream(self, ids: Words) -> Iterator[tuple[str, WindowState, Words]]:
        """Each stream with its window and the row ids that these entries combine."""

    def write_row_ids(self, ring: Records, first: int, columns: Mapping[str, int], ids: Words) -> None:
        """Write the row ids of these entries into a ring from the id `first` on, each stream in its column."""

    def still_alive(self, candidates: Combinations) -> Combinations:
        """The candidates, just found here, that are alive by what is known now about the ends of their rows."""


@dataclass(frozen=True, slots=True)
class Base:
    """The window of one stream."""

    alias: str
    window: WindowState

    @property
    def aliases(self) -> tuple[str, ...]:
        return (self.alias,)

    def by_stream(self, ids: Words) -> Iterator[tuple[str, WindowState, Words]]:
        yield self.alias, self.window, ids

    def write_row_ids(self, ring: Records, first: int, columns: Mapping[str, int], ids: Words) -> None:
        write_column(ring, first, columns[self.alias], ids)

    def still_alive(self, candidates: Combinations) -> Combinations:
        return candidates


class Combinations:
    """Entries of one side, each matched with one of the `parent` combinations; heads have no parent.

    `positions` says which parent each entry is matched with. Combinations carry only what the next join needs: an id
    each, their common lifetime, and key words on demand.
    """

    __slots__ = ("_words", "ends", "ids", "parent", "positions", "side", "starts")

    def __init__(
        self,
        side: Side,
        ids: Words,
        starts: Words,
        ends: Words,
        parent: Combinations | None = None,
        positions: Words | None = None,
    ) -> None:
        self.side = side
        self.ids = ids
        self.starts = starts
        self.ends = ends
        self.parent = parent
        self.positions = positions
        self._words: dict[tuple[str, int], Words] = {}

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, chosen: Words | slice) -> Combinations:
        """The combinations at the chosen positions."""
        positions = None if self.positions is None else self.positions[chosen]
        return Combinations(self.side, self.ids[chosen], self.starts[chosen], self.ends[chosen], self.parent, positions)

    def by_stream(self) -> Iterator[tuple[str, WindowState, Words]]:
        """Every stream joined so far with its window and the row ids of these combinations, the last one first."""
        for side, ids in self._sides():
            yield from side.by_stream(ids)

    def write_row_ids(self, ring: Records, first: int, columns: Mapping[str, int]) -> None:
        """Write the row ids of these combinations into a ring from the id `first` on, each stream in its column."""
        for side, ids in self._sides():
            side.write_row_ids(ring, first, columns, ids)

    def row_ids(self, columns: Mapping[str, int]) -> Records:
        """The row ids of these combinations as a table, each stream in its column."""
        ring: Records = np.empty((1 << len(self).bit_length(), len(columns)), np.int64)
        self.write_row_ids(ring, 0, columns)
        return ring[: len(self)]

    def _sides(self) -> Iterator[tuple[Side, Words]]:
        """Every side joined so far, the last one first, with the entries of these combinations."""
        node, positions = self, None
        while True:
            yield node.side, node.ids if positions is None else node.ids[positions]
            if node.parent is None or node.positions is None:
                return
            positions = node.positions if positions is None else node.positions[positions]
            node = node.parent

    def rows_of(self, alias: str) -> tuple[WindowState, Words]:
        """The window of one of the joined streams, and the row ids of these combinations."""
        return next((window, ids) for stream, window, ids in self.by_stream() if stream == alias)

    def words(self, alias: str, class_number: int) -> Words:
        """The words that one of the joined streams has in an attribute class or a band."""
        words = self._words.get((alias, class_number))
        if words is None:
            if alias in self.side.aliases:
                words = self.side.window.words(class_number, self.ids)
            else:
                assert self.parent is not None and self.positions is not None
                words = self.parent.words(alias, class_number)[self.positions]
            self._words[alias, class_number] = words
        return words


def heads(side: Side, first: int, last: int) -> Combinations:
    """The entries of a side from the id `first` up to `last`, before any join."""
    return Combinations(side, np.arange(first, last), *side.window.lifetimes(first, last))


def rows_with(base: Base, ids: Words, since: int) -> Combinations:
    """Those of these rows of a stream that live after `since`, before any join; their lifetimes are cut to that."""
    slots = ids & base.window.mask
    starts, ends = np.maximum(base.window.starts[slots], since), base.window.ends[slots]
    alive = np.flatnonzero(starts < ends)
    return Combinations(base, ids[alive], starts[alive], ends[alive])
