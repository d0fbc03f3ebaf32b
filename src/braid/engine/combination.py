"""Combinations of rows, one per stream joined so far, on their way through a sequence of joins."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from braid.engine.compiled import Words
from braid.engine.window import Window


class Combinations:
    """Rows of one stream, each matched with one of the `parent` combinations; without a parent, the heads themselves.

    Only what the next join needs is carried along: a row id each, the common lifetime, and on demand key words.
    """

    __slots__ = ("_words", "alias", "ends", "ids", "parent", "positions", "starts", "window")

    def __init__(
        self,
        alias: str,
        window: Window,
        ids: Words,
        starts: Words,
        ends: Words,
        parent: Combinations | None = None,
        positions: Words | None = None,
    ) -> None:
        self.alias = alias
        self.window = window
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
        return Combinations(
            self.alias,
            self.window,
            self.ids[places],
            self.starts[places],
            self.ends[places],
            self.parent,
            positions,
        )

    def by_stream(self) -> Iterator[tuple[str, Window, Words]]:
        """Every stream joined so far with its window and the row ids of these combinations, the last one first."""
        node, places = self, None
        while True:
            yield node.alias, node.window, node.ids if places is None else node.ids[places]
            if node.parent is None or node.positions is None:
                return
            places = node.positions if places is None else node.positions[places]
            node = node.parent

    def words(self, alias: str, number: int) -> Words:
        """The words that one of the joined streams has in an attribute class."""
        known = self._words.get((alias, number))
        if known is None:
            if alias == self.alias:
                known = self.window.words(number, self.ids)
            else:
                assert self.parent is not None and self.positions is not None
                known = self.parent.words(alias, number)[self.positions]
            self._words[alias, number] = known
        return known


def heads(alias: str, window: Window, first: int, last: int) -> Combinations:
    """The rows of a window from one id up to another, before they are joined with anything."""
    starts, ends = window.lifetimes(first, last)
    return Combinations(alias, window, np.arange(first, last), starts, ends)
