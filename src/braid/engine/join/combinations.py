"""Combinations of rows, one per stream joined so far, on their way through a sequence of joins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from braid.engine.arrays.jit import Records, Words
from braid.engine.arrays.ring import lay_one
from braid.engine.window.window_state import WindowState


class Side(Protocol):
    """What a join probes: the rows of a stream, or combinations of several that a plan keeps."""

    @property
    def aliases(self) -> tuple[str, ...]:
        """The streams whose rows are in it."""

    @property
    def window(self) -> WindowState:
        """Where they are found by key."""

    def by_stream(self, ids: Words) -> Iterator[tuple[str, WindowState, Words]]:
        """The rows of each stream that some entries of the window stand for."""

    def lay(self, ring: Records, first: int, columns: Mapping[str, int], ids: Words) -> None:
        """Put the row ids that some entries of the window stand for into the columns of their streams, in the rows of a
        ring from the id `first` on."""

    def still_alive(self, found: Combinations) -> Combinations:
        """Those of the combinations just found here whose end has not come since it was last written down."""


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

    def lay(self, ring: Records, first: int, columns: Mapping[str, int], ids: Words) -> None:
        lay_one(ring, first, columns[self.alias], ids)

    def still_alive(self, found: Combinations) -> Combinations:
        return found


class Combinations:
    """Entries of one side, each matched with one of the `parent` combinations; without a parent, the heads themselves.

    Only what the next join needs is carried along: an id each, the common lifetime, and on demand key words.
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

    def take(self, places: Words | slice) -> Combinations:
        """Some of these combinations."""
        positions = None if self.positions is None else self.positions[places]
        return Combinations(self.side, self.ids[places], self.starts[places], self.ends[places], self.parent, positions)

    def by_stream(self) -> Iterator[tuple[str, WindowState, Words]]:
        """Every stream joined so far with its window and the row ids of these combinations, the last one first."""
        for side, ids in self._sides():
            yield from side.by_stream(ids)

    def lay(self, ring: Records, first: int, columns: Mapping[str, int]) -> None:
        """Put the row ids of these combinations into a ring from the id `first` on, each stream in its column."""
        for side, ids in self._sides():
            side.lay(ring, first, columns, ids)

    def rows(self, columns: Mapping[str, int]) -> Records:
        """The row ids of these combinations, each stream in its column."""
        ring: Records = np.empty((1 << len(self).bit_length(), len(columns)), np.int64)
        self.lay(ring, 0, columns)
        return ring[: len(self)]

    def _sides(self) -> Iterator[tuple[Side, Words]]:
        node, places = self, None
        while True:
            yield node.side, node.ids if places is None else node.ids[places]
            if node.parent is None or node.positions is None:
                return
            places = node.positions if places is None else node.positions[places]
            node = node.parent

    def rows_of(self, alias: str) -> tuple[WindowState, Words]:
        """The window of one of the joined streams, and the row ids of these combinations."""
        return next((window, ids) for stream, window, ids in self.by_stream() if stream == alias)

    def words(self, alias: str, number: int) -> Words:
        """The words that one of the joined streams has in an attribute class."""
        known = self._words.get((alias, number))
        if known is None:
            if alias in self.side.aliases:
                known = self.side.window.words(number, self.ids)
            else:
                assert self.parent is not None and self.positions is not None
                known = self.parent.words(alias, number)[self.positions]
            self._words[alias, number] = known
        return known


def heads(side: Side, first: int, last: int) -> Combinations:
    """The entries of a window from one id up to another, before they are joined with anything."""
    return Combinations(side, np.arange(first, last), *side.window.lifetimes(first, last))


def rows_with(base: Base, ids: Words, since: int) -> Combinations:
    """Some rows of a stream as far as they live after `since`, before they are joined with anything."""
    places = ids & base.window.mask
    starts, ends = np.maximum(base.window.starts[places], since), base.window.ends[places]
    alive = np.flatnonzero(starts < ends)
    return Combinations(base, ids[alive], starts[alive], ends[alive])
