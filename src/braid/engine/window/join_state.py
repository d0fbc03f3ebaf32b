"""Combinations that a plan keeps: the state of an inner node of a join tree.

An entry is nothing but the ids of the rows it is made of, with their common lifetime and key words, in a window like
that of a stream: it is found by key, or by looking at every entry, and expires as rows do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from braid.engine.arrays.columns import WORD, Flags, State
from braid.engine.arrays.jit import Records, Words
from braid.engine.arrays.ring import all_below, lay_all
from braid.engine.join.combinations import Base, Combinations
from braid.engine.keys.hashing import FULL_HASH
from braid.engine.window import chain
from braid.engine.window.window_state import Renaming, WindowState
from braid.model.window import FOREVER

RENEWED = 4
"""When room is needed, one in so many places of a window is looked at at a time."""


class JoinState:
    """The combinations of some streams that are alive, as far as they are known: see `missing`.

    `bringers` tells for each attribute class or band, by number, a stream whose word to take, and `grains` those of the
    bands. The ends of rows of `counted` streams are not known from the start, so they are asked for again when an entry
    is used.
    """

    def __init__(
        self,
        bases: Sequence[Base],
        bringers: Mapping[int, str],
        exact: frozenset[int],
        counted: Iterable[str] = (),
        bits: int = FULL_HASH,
        grains: Mapping[int, int] | None = None,
    ) -> None:
        self.aliases = tuple(base.alias for base in bases)
        self._bases = {base.alias: base for base in bases}
        self._columns = {alias: place for place, alias in enumerate(self.aliases)}
        # The only column of an entry: the ids of its rows, one behind the other.
        ids = pa.binary(WORD * len(self.aliases))
        self._bringers = dict(bringers)
        self._counted = frozenset(counted) & frozenset(self.aliases)
        self._new: list[tuple[int, int]] = []
        self.horizon = -FOREVER
        """No row that starts before this will ask for entries any more."""
        classes = [number for number in bringers if number not in (grains or {})]
        self.window = WindowState(classes, exact, (ids,), bits, grains)
        self.missing: Missing | None = Missing({base.alias: base.window for base in bases})

    def by_stream(self, ids: Words) -> Iterator[tuple[str, WindowState, Words]]:
        rows = self._rows(ids)
        for alias, place in self._columns.items():
            yield alias, self._bases[alias].window, rows[:, place]

    def lay(self, ring: Records, first: int, columns: Mapping[str, int], ids: Words) -> None:
        lay_all(ring, first, np.array([columns[alias] for alias in self.aliases]), self._stored, ids)

    @property
    def _stored(self) -> Records:
        """The ring of the row ids of all entries."""
        return self.window.payload.words(0)

    def _rows(self, ids: Words) -> Records:
        """The row ids of some entries, one column for each stream."""
        rows: Records = self._stored[ids & self.window.mask]
        return rows

    def add(self, found: Combinations) -> None:
        """Keep combinations of exactly these streams, and remember that they are new."""
        first = self._write(found)
        if self._new and self._new[-1][1] == first:
            first, _ = self._new.pop()
        self._new.append((first, self.window.head))

    def add_older(self, found: Combinations) -> None:
        """Keep combinations that have been missing: they are not new to who is above in the tree."""
        if len(found):
            self._write(found)

    def take_new(self) -> list[tuple[int, int]]:
        """The entries added since this was last asked: the first id and that behind the last, of each stretch."""
        new, self._new = self._new, []
        return new

    def _write(self, found: Combinations) -> int:
        words = {number: found.words(bringer, number) for number, bringer in self._bringers.items()}
        if len(self.window) + len(found) > self.window.capacity:
            self._make_room(len(found))
        first = self.window.extend(found.starts, found.ends, words)
        found.lay(self._stored, first, self._columns)
        return first

    def forget(self, horizon: int) -> None:
        """From now on no row that starts before `horizon` asks for entries."""
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
        places, column = np.arange(self.window.tail, self.window.head) & self.window.mask, self._columns[alias]
        self._stored[places, column] = renaming(self._stored[places, column])
        if self.missing is not None:
            self.missing.rename(alias, renaming)

    def still_alive(self, found: Combinations) -> Combinations:
        if not self._counted:
            return found
        ends = np.minimum(found.ends, self._ends_now(found.ids))
        alive = np.flatnonzero(found.starts < ends)
        refreshed = found.take(alive)
        refreshed.ends = ends[alive]
        return refreshed

    def _ends_now(self, ids: Words) -> Words:
        """When the counted rows of entries end, as far as is known by now."""
        ends = np.full(len(ids), FOREVER)
        for alias, window, rows in self.by_stream(ids):
            if alias in self._counted:
                np.minimum(ends, window.ends[rows & window.mask], out=ends, where=rows >= window.tail)
                ends[rows < window.tail] = -FOREVER
        return ends

    def _make_room(self, count: int) -> None:
        """While it helps, let those of the oldest entries go that are dead behind one that lives on."""
        if self._counted:
            ids = np.arange(self.window.tail, self.window.head)
            _, ends = self.window.lifetimes(self.window.tail, self.window.head)
            self.window.close(ids, np.minimum(ends, self._ends_now(ids)))
            self.window.forget(self.horizon)
        window, new = self.window, self._new[0][0] if self._new else self.window.head
        stretch = max(1, window.capacity // RENEWED)
        for first in range(window.tail, new, stretch):
            if len(window) + count <= window.capacity or not self._renew(min(first + stretch, new)):
                return

    def _renew(self, before: int) -> bool:
        """If few of the entries below an id are alive, put these behind all others, and let the rest go.

        Entries die in any order, most of them early: of the oldest few are left, while to bring all that live together
        would cost many times as much. Nobody knows entries by their ids, but for the new ones.
        """
        window = self.window
        ids = chain.alive(window.ends, window.mask, window.tail, before, self.horizon)
        if 2 * len(ids) > before - window.tail:
            return False
        places = ids & window.mask
        words = {number: window.words(number, ids) for number in self._bringers}
        window.tail = before
        first = window.extend(window.starts[places], window.ends[places], words)
        lay_all(self._stored, first, np.arange(len(self.aliases)), self._stored, ids)
        return True

    def state(self) -> State:
        missing = None if self.missing is None else self.missing.state()
        return {"horizon": self.horizon, "window": self.window.state(), "missing": missing}

    def load(self, state: State) -> None:
        self.horizon = state["horizon"]
        self.window.load(state["window"])
        self.missing = Missing({alias: base.window for alias, base in self._bases.items()})
        if state["missing"] is None:
            self.missing = None
        else:
            self.missing.load(state["missing"])


class Missing:
    """What may be missing from kept combinations: those of rows that were all there before anything was kept.

    Each combination with a newer row is found in the normal course of things. Of the older ones, all those of a row are
    added at once and the row is noted as *attempted*; one with an attempted row, whichever, is there already.
    """

    def __init__(self, windows: Mapping[str, WindowState]) -> None:
        self._windows = windows
        self.before = {alias: window.head for alias, window in windows.items()}
        self._first = {alias: window.tail for alias, window in windows.items()}
        self._attempted: dict[str, Flags] = {}
        self._remaining = {alias: len(window) for alias, window in windows.items()}

    def is_over(self) -> bool:
        """Whether every older combination has been added, or has expired with the last older row of some stream."""
        return any(
            self._remaining[alias] == 0 or window.tail >= self.before[alias] for alias, window in self._windows.items()
        )

    def older(self, alias: str) -> Words:
        """The older rows of a stream that are still here."""
        return np.arange(self._windows[alias].tail, self.before[alias])

    def fresh(self, alias: str, ids: Words) -> Words:
        """Those of some older rows of a stream that have not been attempted."""
        attempted = self._attempted.get(alias)
        return ids if attempted is None else ids[~attempted[ids - self._first[alias]]]

    def attempt(self, alias: str, fresh: Words) -> None:
        """All older combinations with these rows, each named once, are now there."""
        if alias not in self._attempted:
            self._attempted[alias] = np.zeros(self.before[alias] - self._first[alias], np.bool_)
        self._attempted[alias][fresh - self._first[alias]] = True
        self._remaining[alias] -= len(fresh)

    def lacking(self, found: Combinations) -> Combinations:
        """Those of some combinations that are older and not there yet."""
        columns = {alias: column for column, alias in enumerate(self.before)}
        rows = found.rows(columns)
        lacking = all_below(rows, np.array(list(self.before.values())))
        for alias, attempted in self._attempted.items():
            lacking = lacking[~attempted[rows[lacking, columns[alias]] - self._first[alias]]]
        return found if len(lacking) == len(found) else found.take(lacking)

    def rename(self, alias: str, renaming: Renaming) -> None:
        kept = renaming.kept[renaming.kept < self.before[alias]]
        if alias in self._attempted:
            self._attempted[alias] = self._attempted[alias][kept - self._first[alias]]
            self._remaining[alias] = int(len(kept) - self._attempted[alias].sum())
        else:
            self._remaining[alias] = len(kept)
        self.before[alias] = renaming.bound(self.before[alias])
        self._first[alias] = renaming.first

    def state(self) -> State:
        return {
            "before": dict(self.before),
            "first": dict(self._first),
            "attempted": dict(self._attempted),
            "remaining": dict(self._remaining),
        }

    def load(self, state: State) -> None:
        self.before, self._first = dict(state["before"]), dict(state["first"])
        self._attempted, self._remaining = dict(state["attempted"]), dict(state["remaining"])
