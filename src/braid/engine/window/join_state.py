"""Join states: the combinations that a plan keeps, one state for each inner join of its tree.

An entry consists of the ids of the rows it combines, their common lifetime, and key words. Entries live in a window,
like the rows of a stream: an index or a scan finds them, and they expire as rows do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from braid.engine.arrays.columns import WORD, State
from braid.engine.arrays.jit import Records, Words
from braid.engine.arrays.ring import copy_rows
from braid.engine.join.combinations import Base, Combinations
from braid.engine.keys.hashing import FULL_HASH
from braid.engine.window import chain
from braid.engine.window.missing import Missing
from braid.engine.window.window_state import Renaming, WindowState
from braid.model.window import FOREVER

STRETCHES = 4
"""When a join state needs room, it looks for dead entries in one stretch of its window after another: this many."""


class JoinState:
    """The live combinations of some streams, as far as they have been found (see `missing`).

    `word_streams` names a stream for each attribute class and band, by number: entries take their word from its rows.
    `grains` are those of the bands. `counted` are the streams whose windows count rows: the ends of their rows become
    known later, so they are looked up again when an entry is used.
    """

    def __init__(
        self,
        bases: Sequence[Base],
        word_streams: Mapping[int, str],
        exact: frozenset[int],
        counted: Iterable[str] = (),
        bits: int = FULL_HASH,
        grains: Mapping[int, int] | None = None,
    ) -> None:
        self.aliases = tuple(base.alias for base in bases)
        self._bases = {base.alias: base for base in bases}
        self._columns = {alias: column for column, alias in enumerate(self.aliases)}
        self._word_streams = dict(word_streams)
        self._counted = frozenset(counted) & frozenset(self.aliases)
        self._new: list[tuple[int, int]] = []
        self.horizon = -FOREVER
        """No row that starts before this will probe the entries any more."""
        classes = [key_number for key_number in word_streams if key_number not in (grains or {})]
        # The payload of an entry is one column: its row ids, one after the other.
        row_ids = pa.binary(WORD * len(self.aliases))
        self.window = WindowState(classes, exact, (row_ids,), bits, grains)
        self.missing: Missing | None = Missing({base.alias: base.window for base in bases})
        """Which combinations may be missing; None if the state is complete."""

    def by_stream(self, ids: Words) -> Iterator[tuple[str, WindowState, Words]]:
        row_ids: Records = self._row_ids[ids & self.window.mask]
        for alias, column in self._columns.items():
            yield alias, self._bases[alias].window, row_ids[:, column]

    def write_row_ids(self, ring: Records, first: int, columns: Mapping[str, int], ids: Words) -> None:
        copy_rows(ring, first, np.array([columns[alias] for alias in self.aliases]), self._row_ids, ids)

    @property
    def _row_ids(self) -> Records:
        """The ring of the row ids of all entries, one column for each stream."""
        return self.window.payload.words(0)

    def add(self, combinations: Combinations) -> None:
        """Add combinations of exactly these streams, and remember that they are new."""
        first = self._write(combinations)
        if self._new and self._new[-1][1] == first:
            first, _ = self._new.pop()
        self._new.append((first, self.window.next_id))

    def add_older(self, combinations: Combinations) -> None:
        """Add combinations that have been missing: for the joins above they are not new."""
        if len(combinations):
            self._write(combinations)

    def take_new(self) -> list[tuple[int, int]]:
        """The entries that were new since the last call, as ranges of ids: first, and one past the last."""
        new, self._new = self._new, []
        return new

    def _write(self, combinations: Combinations) -> int:
        words = {
            key_number: combinations.words(stream, key_number) for key_number, stream in self._word_streams.items()
        }
        if len(self.window) + len(combinations) > self.window.capacity:
            self._make_room(len(combinations))
        first = self.window.extend(combinations.starts, combinations.ends, words)
        combinations.write_row_ids(self._row_ids, first, self._columns)
        return first

    def forget(self, horizon: int) -> None:
        """From now on no row that starts before `horizon` probes the entries."""
        self.horizon = horizon
        self.window.forget(horizon)
        self.check_missing()

    def check_missing(self) -> bool:
        """Whether anything may still be missing."""
        if self.missing is not None and self.missing.is_over():
            self.missing = None
        return self.missing is not None

    def rename(self, alias: str, renaming: Renaming) -> None:
        """The rows of a stream have got new ids."""
        if alias not in self._columns:
            return
        slots, column = np.arange(self.window.tail, self.window.next_id) & self.window.mask, self._columns[alias]
        self._row_ids[slots, column] = renaming(self._row_ids[slots, column])
        if self.missing is not None:
            self.missing.rename(alias, renaming)

    def still_alive(self, candidates: Combinations) -> Combinations:
        if not self._counted:
            return candidates
        ends = np.minimum(candidates.ends, self._ends_now(candidates.ids))
        alive = np.flatnonzero(candidates.starts < ends)
        refreshed = candidates.take(alive)
        refreshed.ends = ends[alive]
        return refreshed

    def _ends_now(self, ids: Words) -> Words:
        """When the first counted row of each entry ends, as far as is known now."""
        ends = np.full(len(ids), FOREVER)
        for alias, window, rows in self.by_stream(ids):
            if alias in self._counted:
                np.minimum(ends, window.ends[rows & window.mask], out=ends, where=rows >= window.tail)
                ends[rows < window.tail] = -FOREVER
        return ends

    def _make_room(self, count: int) -> None:
        """Remove dead entries that lie behind a live one, stretch by stretch from the oldest, as long as it pays."""
        if self._counted:
            ids = np.arange(self.window.tail, self.window.next_id)
            _, ends = self.window.lifetimes(self.window.tail, self.window.next_id)
            self.window.close(ids, np.minimum(ends, self._ends_now(ids)))
            self.window.forget(self.horizon)
        window = self.window
        first_new = self._new[0][0] if self._new else window.next_id
        stretch = max(1, window.capacity // STRETCHES)
        for first in range(window.tail, first_new, stretch):
            has_room = len(window) + count <= window.capacity
            if has_room or not self._renew(min(first + stretch, first_new)):
                return

    def _renew(self, before: int) -> bool:
        """If at most half of the entries below the id `before` are alive, append these again and remove all below it.

        Entries die in any order, most of them early, so few of the oldest are left. Compacting all entries would cost
        many times as much. Entries may get new ids, because only new ones are known by their ids elsewhere.
        """
        window = self.window
        ids = chain.alive(window.ends, window.mask, window.tail, before, self.horizon)
        if 2 * len(ids) > before - window.tail:
            return False
        slots = ids & window.mask
        words = {key_number: window.words(key_number, ids) for key_number in self._word_streams}
        window.tail = before
        first = window.extend(window.starts[slots], window.ends[slots], words)
        copy_rows(self._row_ids, first, np.arange(len(self.aliases)), self._row_ids, ids)
        return True

    def state(self) -> State:
        missing = None if self.missing is None else self.missing.state()
        return {"horizon": self.horizon, "window": self.window.state(), "missing": missing}

    def load(self, state: State) -> None:
        self.horizon = state["horizon"]
        self.window.load(state["window"])
        self.missing = None
        if state["missing"] is not None:
            self.missing = Missing({alias: base.window for alias, base in self._bases.items()})
            self.missing.load(state["missing"])
