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
from braid.engine.window.window_state import KeyClasses
from braid.model.access import CELLS
from braid.model.expressions.expression import Column

FEW = 256
"""While more combinations than this are undecided, `having_match` looks at one candidate of each at a time."""

PIECE = 1 << 15
"""The most matches in a piece: small enough that a piece stays in the processor's cache."""

Gather = Callable[[Sequence[Column], Combinations], Mapping[Column, pa.Array]]
"""Reads the values of some columns for combinations."""

Buffers = tuple[Words, Words, Words, Words]
"""Where a piece of matches is written: positions, ids, starts, ends."""


class Workspace:
    """Buffers for pieces of matches. They are reused, so that few are needed and most of them stay in the cache."""

    def __init__(self) -> None:
        self._free: list[Buffers] = []

    @contextmanager
    def buffers(self) -> Iterator[Buffers]:
        buffers = self._free.pop() if self._free else _new_buffers()
        try:
            yield buffers
        finally:
            self._free.append(buffers)


def _new_buffers() -> Buffers:
    positions, ids, starts, ends = (np.empty(PIECE, np.int64) for _ in range(4))
    return positions, ids, starts, ends


@dataclass(frozen=True, slots=True)
class KeyPair:
    """An attribute class by which a join matches: which probing and which probed stream the words come from.

    The positions are those of the key values in the payloads of these streams; None if words alone tell values apart.
    """

    class_number: int
    probing_stream: str
    probing_position: int | None
    probed_stream: str
    probed_position: int | None


@dataclass(frozen=True, slots=True)
class BandProbe:
    """A band by which a join finds candidates: their words are at most `reach` from that of the probing stream.

    `grain` is the number of low bits of a word that the index ignores.
    """

    band_number: int
    probing_stream: str
    reach: int
    grain: int


class Matcher:
    """Probes one side with combinations of other streams: by keys, by a band, by both, or row by row.

    `index` has the numbers of the keys, and then of the band, that the index is on; without any, every row is looked
    at. Matches are equal in all `keys` in any case: those that the index does not tell apart are compared. Rows of a
    stream below the id `since` are ignored.
    """

    def __init__(
        self,
        name: str,
        side: Side,
        keys: Sequence[KeyPair],
        conditions: Sequence[Compiled],
        gather: Gather,
        workspace: Workspace,
        band: BandProbe | None = None,
        index: KeyClasses = (),
    ) -> None:
        self.name = name
        self.side = side
        self.window = side.window
        self.since = 0
        self.keys = keys
        self.classes = index
        self.band = band if band is not None and band.band_number in index else None
        self.probes = 0
        self.candidates = 0
        """The rows that were looked at because the index, or the scan, found them."""
        self.matches = 0
        self._indexed = [key for key in keys if key.class_number in index]
        self._unindexed = [key for key in keys if key.class_number not in index]
        self._conditions = conditions
        self._gather = gather
        self._workspace = workspace

    @property
    def work(self) -> int:
        """The places that all probes so far have looked into, and the candidates that they looked at."""
        return self.probes * (1 if self.band is None else CELLS) + self.candidates

    def limit(self, limits: Mapping[str, int]) -> int:
        """The id from which rows are too new to be seen. Combinations of a join state are never too new."""
        return limits.get(self.name, self.window.next_id)

    def matches_of(self, probing: Combinations, limit: int) -> Iterator[Combinations]:
        """Each probing combination with each entry below the id `limit` that it joins.

        A piece is only valid until the next one is asked for.
        """
        self.probes += len(probing)
        with self._workspace.buffers() as buffers:
            for candidates in self._candidates(probing, limit, buffers):
                self.candidates += len(candidates)
                matches = self._filter(self._verify(self.side.still_alive(candidates)))
                if len(matches):
                    self.matches += len(matches)
                    yield matches

    def having_match(self, probing: Combinations, limit: int) -> Combinations:
        """The probing combinations, at most a PIECE, that join any entry below the id `limit`.

        In each round every undecided combination looks at its next candidate. Once few are undecided, all their
        candidates are looked at together, which is faster than one by one. Bands have few candidates anyway.
        """
        matched = np.zeros(len(probing), np.bool_)
        undecided, resumes = np.arange(len(probing)), np.full(len(probing), chain.NO_ROW)
        with self._workspace.buffers() as buffers:
            while len(undecided) > FEW and self.band is None:
                asking = probing if len(undecided) == len(probing) else probing.take(undecided)
                candidates = self._next_candidates(asking, resumes, limit, buffers)
                matches = self._filter(self._verify(self.side.still_alive(candidates)))
                matched[undecided[matches.positions]] = True
                remaining = np.flatnonzero((resumes != chain.DONE) & ~matched[undecided])
                undecided, resumes = undecided[remaining], resumes[remaining]
        if len(undecided):
            for matches in self.matches_of(probing.take(undecided), limit):
                matched[undecided[matches.positions]] = True
        return probing.take(np.flatnonzero(matched))

    def _next_candidates(self, probing: Combinations, resumes: Words, limit: int, buffers: Buffers) -> Combinations:
        """The next candidate of each probing combination.

        `resumes` says where each combination continues its search, and is updated.
        """
        window, tail = self.window, max(self.window.tail, self.since)
        if self.classes:
            index = window.index(self.classes)
            count = chain.probe_next(
                self._index_key(probing), probing.starts, probing.ends, resumes, tail, limit,
                index.buckets, index.records, window.mask, window.shift, *buffers,
            )  # fmt: skip
        else:
            count = chain.scan_next(
                probing.starts, probing.ends, resumes, tail, limit,
                window.starts, window.ends, window.mask, *buffers,
            )  # fmt: skip
        return self._combine(probing, count, buffers)

    def having_candidate(self, probing: Combinations, limit: int) -> Combinations:
        """The probing combinations that have any row with equal keys in this window, whatever `index` is on."""
        window, classes = self.window, tuple(key.class_number for key in self.keys)
        index, key = window.index(classes), window.index_key(classes, _words(probing, self.keys))
        rows, tail = np.empty(len(probing), np.int64), max(window.tail, self.since)
        count = chain.rows_with_candidate(
            key, probing.starts, probing.ends, tail, limit,
            index.buckets, index.records, window.mask, window.shift, rows,
        )  # fmt: skip
        return probing if count == len(probing) else probing.take(rows[:count])

    def _index_key(self, probing: Combinations) -> Words:
        """The keys of the probing combinations in the index that is probed."""
        words = _words(probing, self._indexed)
        if self.band is not None:
            words.append(probing.words(self.band.probing_stream, self.band.band_number))
        return self.window.index_key(self.classes, words)

    def _candidates(self, probing: Combinations, limit: int, buffers: Buffers) -> Iterator[Combinations]:
        """Each probing combination with each entry that may match it, in pieces."""
        window, tail = self.window, max(self.window.tail, self.since)
        row, resume = 0, chain.NO_ROW
        if self.classes:
            index = window.index(self.classes)
            key = self._index_key(probing)
        while row < len(probing):
            if self.band is not None:
                count, row, resume = probe_near(
                    key, probing.starts, probing.ends, row, resume, tail, limit, self.band.reach, self.band.grain,
                    index.buckets, index.records, window.mask, window.shift, *buffers,
                )  # fmt: skip
            elif self.classes:
                count, row, resume = chain.probe(
                    key, probing.starts, probing.ends, row, resume, tail, limit,
                    index.buckets, index.records, window.mask, window.shift, *buffers,
                )  # fmt: skip
            else:
                count, row, resume = chain.scan(
                    probing.starts, probing.ends, row, resume, tail, limit,
                    window.starts, window.ends, window.mask, *buffers,
                )  # fmt: skip
            yield self._combine(probing, count, buffers)

    def _combine(self, probing: Combinations, count: int, buffers: Buffers) -> Combinations:
        """The first `count` candidates in the buffers, as combinations."""
        positions, ids, starts, ends = (buffer[:count] for buffer in buffers)
        return Combinations(self.side, ids, starts, ends, probing, positions)

    def _verify(self, candidates: Combinations) -> Combinations:
        """The candidates whose keys are really equal, not only their hashes."""
        for key in self._unindexed if self.window.is_exact(self.classes) else self.keys:
            probed_words = candidates.words(key.probed_stream, key.class_number)
            same = probed_words == candidates.words(key.probing_stream, key.class_number)
            if not same.all():
                candidates = candidates.take(np.flatnonzero(same))
            candidates = self._verify_values(candidates, key)
        return candidates

    def _verify_values(self, candidates: Combinations, key: KeyPair) -> Combinations:
        if key.probed_position is None or key.probing_position is None or not len(candidates):
            return candidates
        probing_window, probing_ids = candidates.rows_of(key.probing_stream)
        probed_window, probed_ids = candidates.rows_of(key.probed_stream)
        same = probed_window.payload.equals(
            key.probed_position, probed_ids, probing_window.payload, key.probing_position, probing_ids
        )
        return candidates if same.all() else candidates.take(np.flatnonzero(same))

    def _filter(self, candidates: Combinations) -> Combinations:
        """The candidates that satisfy all residuals."""
        for condition in self._conditions:
            if len(candidates):
                values = condition(self._gather(condition.columns, candidates), len(candidates))
                candidates = candidates.take(_positions_of_true(values))
        return candidates


def _words(probing: Combinations, keys: Sequence[KeyPair]) -> list[Words]:
    return [probing.words(key.probing_stream, key.class_number) for key in keys]


def _positions_of_true(values: pa.Array) -> Words:
    positions: Words = np.flatnonzero(values.fill_null(False).to_numpy(zero_copy_only=False))
    return positions
