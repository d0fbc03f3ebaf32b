"""One join of a sequence: combinations in, longer combinations out, in pieces that stay small."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from braid.engine.arrays.jit import Words
from braid.engine.join.combinations import Combinations, Side
from braid.engine.kernels.expression import Compiled
from braid.engine.window import chain
from braid.engine.window.nearby import probe_near
from braid.model.expressions.expression import Column

FEW = 256
"""Where one match is enough, so many combinations look at all their entries at once, more at one after the other."""

PIECE = 1 << 15
"""Matches are handed on in pieces of at most this many, so that each stays in the processor's cache."""

Gather = Callable[[Sequence[Column], Combinations], Mapping[Column, pa.Array]]

Buffers = tuple[Words, Words, Words, Words]
"""Where a piece of matches is written: positions, ids, starts, ends."""


class Workspace:
    """Buffers for pieces of matches, as many as are in use at a time: the fewer, the more of them is in the cache."""

    def __init__(self) -> None:
        self._free: list[Buffers] = []

    @contextmanager
    def buffers(self) -> Iterator[Buffers]:
        taken = self._free.pop() if self._free else _new_buffers()
        try:
            yield taken
        finally:
            self._free.append(taken)


def _new_buffers() -> Buffers:
    positions, ids, starts, ends = (np.empty(PIECE, np.int64) for _ in range(4))
    return positions, ids, starts, ends


@dataclass(frozen=True, slots=True)
class KeyPair:
    """An attribute class of a join: who of the probing and of the probed streams brings the word.

    The places are those of the values in the payloads of both, None if words tell values apart.
    """

    number: int
    bringer: str
    bringer_place: int | None
    owner: str
    owner_place: int | None


@dataclass(frozen=True, slots=True)
class Near:
    """A band by which a join finds candidates: its number, who of the probing streams brings the word, and how far
    from it those of matches may be."""

    number: int
    bringer: str
    reach: int
    grain: int


class Matcher:
    """Probes one side with combinations of other streams: by keys, else near the words of a band, else row by row.

    Of a stream, only rows from the id `since` on are seen; that is all of them, unless somebody says otherwise.
    """

    def __init__(
        self,
        name: str,
        side: Side,
        keys: Sequence[KeyPair],
        conditions: Sequence[Compiled],
        gather: Gather,
        workspace: Workspace,
        near: Near | None = None,
    ) -> None:
        self.name = name
        self.side = side
        self.window = side.window
        self.since = 0
        self.keys = keys
        self.near = None if keys else near
        self.classes = tuple(key.number for key in keys) if self.near is None else (self.near.number,)
        self.probes = 0
        self.matches = 0
        self._conditions = conditions
        self._gather = gather
        self._workspace = workspace

    def limit(self, limits: Mapping[str, int]) -> int:
        """The id from which rows are too new to be seen. Kept combinations are never too new."""
        return limits.get(self.name, self.window.head)

    def matches_of(self, probing: Combinations, limit: int) -> Iterator[Combinations]:
        """Each probing combination with each entry below the id `limit` that it joins.

        A piece is only good until the next one is asked for.
        """
        self.probes += len(probing)
        with self._workspace.buffers() as buffers:
            for piece in self._candidates(probing, limit, buffers):
                verified = self._filter(self._verify(self.side.still_alive(piece)))
                if len(verified):
                    self.matches += len(verified)
                    yield verified

    def having_match(self, probing: Combinations, limit: int) -> Combinations:
        """Those of the probing combinations, no more than a PIECE, that join any entry below the id `limit`.

        For each, entries are looked at until one is found: all that are undecided go on to their next one. When they
        have become few, they look at all there are, which is quicker than one by one. Near a word there are only few.
        """
        matched = np.zeros(len(probing), np.bool_)
        places, resumes = np.arange(len(probing)), np.full(len(probing), chain.NOBODY)
        with self._workspace.buffers() as buffers:
            while len(places) > FEW and self.near is None:
                undecided = probing if len(places) == len(probing) else probing.take(places)
                following = self._next(undecided, resumes, limit, buffers)
                verified = self._filter(self._verify(self.side.still_alive(following)))
                matched[places[verified.positions]] = True
                left = np.flatnonzero((resumes != chain.DONE) & ~matched[places])
                places, resumes = places[left], resumes[left]
        if len(places):
            for found in self.matches_of(probing.take(places), limit):
                matched[places[found.positions]] = True
        return probing.take(np.flatnonzero(matched))

    def _next(self, probing: Combinations, resumes: Words, limit: int, buffers: Buffers) -> Combinations:
        """The next candidate of each probing combination; `resumes` says where to look, and then where to go on."""
        window, tail = self.window, max(self.window.tail, self.since)
        lifetimes = probing.starts, probing.ends, resumes, tail, limit
        if self.keys:
            index = window.index(self.classes)
            found = chain.probe_next(
                self._key(probing), *lifetimes,
                index.buckets, index.records, window.mask, window.shift, *buffers,
            )  # fmt: skip
        else:
            found = chain.scan_next(*lifetimes, window.starts, window.ends, window.mask, *buffers)
        positions, ids, starts, ends = (buffer[:found] for buffer in buffers)
        return Combinations(self.side, ids, starts, ends, probing, positions)

    def having_any(self, probing: Combinations, limit: int) -> Combinations:
        """Those of the probing combinations that have any candidate in this window."""
        window, index = self.window, self.window.index(self.classes)
        kept, tail = np.empty(len(probing), np.int64), max(window.tail, self.since)
        found = chain.meets(
            self._key(probing), probing.starts, probing.ends, tail, limit,
            index.buckets, index.records, window.mask, window.shift, kept,
        )  # fmt: skip
        return probing if found == len(probing) else probing.take(kept[:found])

    def _key(self, probing: Combinations) -> Words:
        return self.window.index_key(self.classes, [probing.words(key.bringer, key.number) for key in self.keys])

    def _candidates(self, probing: Combinations, limit: int, buffers: Buffers) -> Iterator[Combinations]:
        window, tail = self.window, max(self.window.tail, self.since)
        row, resume = 0, chain.NOBODY
        if self.classes:
            index = window.index(self.classes)
            key = self._key(probing) if self.near is None else probing.words(self.near.bringer, self.near.number)
        while row < len(probing):
            if self.keys:
                found, row, resume = chain.probe(
                    key, probing.starts, probing.ends, row, resume, tail, limit,
                    index.buckets, index.records, window.mask, window.shift, *buffers,
                )  # fmt: skip
            elif self.near is not None:
                found, row, resume = probe_near(
                    key, probing.starts, probing.ends, row, resume, tail, limit, self.near.reach, self.near.grain,
                    index.buckets, index.records, window.mask, window.shift, *buffers,
                )  # fmt: skip
            else:
                found, row, resume = chain.scan(
                    probing.starts, probing.ends, row, resume, tail, limit,
                    window.starts, window.ends, window.mask, *buffers,
                )  # fmt: skip
            positions, ids, starts, ends = (buffer[:found] for buffer in buffers)
            yield Combinations(self.side, ids, starts, ends, probing, positions)

    def _verify(self, found: Combinations) -> Combinations:
        """Only the candidates whose keys are equal indeed, not just hashed alike."""
        if not self.keys or self.window.is_exact(self.classes):
            return found
        for key in self.keys:
            same = found.words(key.owner, key.number) == found.words(key.bringer, key.number)
            if not same.all():
                found = found.take(np.flatnonzero(same))
            if key.owner_place is not None and key.bringer_place is not None and len(found):
                found = self._verify_values(found, key.bringer, key.bringer_place, key.owner, key.owner_place)
        return found

    def _verify_values(
        self, found: Combinations, bringer: str, bringer_place: int, owner: str, owner_place: int
    ) -> Combinations:
        brought_by, brought = found.rows_of(bringer)
        owned_by, owned = found.rows_of(owner)
        same = owned_by.payload.equals(owner_place, owned, brought_by.payload, bringer_place, brought)
        return found if same.all() else found.take(np.flatnonzero(same))

    def _filter(self, found: Combinations) -> Combinations:
        for condition in self._conditions:
            if len(found):
                passed = condition(self._gather(condition.columns, found), len(found))
                found = found.take(_true_places(passed))
        return found


def _true_places(passed: pa.Array) -> Words:
    places: Words = np.flatnonzero(passed.fill_null(False).to_numpy(zero_copy_only=False))
    return places
