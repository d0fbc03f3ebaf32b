"""A new order of probes on trial against the old one.

An order of probe sequences keeps no state, so each new row can go along either order, as long as exactly one of them
gives its results. First a sample of the new rows goes along both orders, and only the old one gives results. So both
are measured on the same rows: one row in a thousand may be most of the work, and would decide any other comparison. If
the new order costs less, it takes the other rows, few at first and more and more; else the old one does. As soon as the
new order has wasted more than a trial may waste, it is left, and the old order takes the rest. So a bad order costs a
small part of one step, whatever made it look good. Another access path is another order here.

A sample may lack the rows that are most of the work. It shows when the other rows cost far more than it has: then those
that cost most go along the order that they have not taken, too, without giving results again.

Decisions depend on the rows of the step alone, not on time.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from braid.engine.arrays.jit import Words
from braid.engine.counts import TrialCounts
from braid.engine.join.completion import HEADS_AT_ONCE
from braid.engine.join.lanes import Lanes
from braid.model.partitions import Partitioning
from braid.model.program import Join, SiteProgram

MOST_WASTED = 0.1
"""The most work that the new order may waste, as a share of what all new rows of a stream cost by the old order."""

HARMLESS = 4_096
"""Work that may always be wasted, in probes and candidates: less than the fixed costs of a step."""

SAMPLE = 16
"""One of this many new rows goes along both orders, and at least this many rows do."""

FIRST_HEADS = 16
"""The rows of the first piece that goes along the new order; each further piece has twice as many."""

MOST_PIECES = 32
"""About the most pieces that the rows which are not sampled go in."""

FAR_MORE = 2.0
"""If rows cost more than this many times what sampled rows do, the sample lacks those that cost most."""

LEAST_EXCESS = 4_096
"""Less work than this beyond what sampled rows cost does not matter, in probes and candidates."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Some rows, by id, that go along the lanes of a plan, and whether these give their results."""

    lanes: Lanes
    ids: Words
    emits: bool = True


@dataclass(frozen=True, slots=True)
class _Taken:
    """Rows, by id, that have gone along an order, and what they have cost."""

    ids: Words
    work: int


class Trial:
    """Divides new rows between the lanes of two plans on the same windows, neither of which keeps join states."""

    def __init__(self, old: Lanes, new: Lanes) -> None:
        self.old = old
        self.new = new
        self._counts = {
            head: TrialCounts() for head in new.inlets if _sequences(old.program, head) != _sequences(new.program, head)
        }

    def concerns(self, stream: str) -> bool:
        """Whether the two orders differ for new rows of this stream."""
        return stream in self._counts

    def counts(self) -> dict[str, TrialCounts]:
        """What sampled rows of each stream have cost by either order since the trial began."""
        return dict(self._counts)

    def divide(self, head: str, first: int, last: int) -> Iterator[Piece]:
        """The rows of a stream from the id `first` up to `last`, in pieces.

        Ask for a piece only when the one before has gone through all its probes.
        """
        if first == last:
            return
        # Rows lie in the order of their keys: only rows drawn at random can stand for the others.
        ids = np.random.default_rng(last - first).permutation(np.arange(first, last))
        sample, others = np.split(ids, [max(SAMPLE, len(ids) // SAMPLE)])
        old_before, new_before = self.old.work, self.new.work
        left = False
        for begin, end in _growing(len(sample)):
            piece = np.sort(sample[begin:end])
            yield Piece(self.old, piece)
            if not left:
                yield Piece(self.new, piece, emits=False)
            old_work, new_work = self.old.work - old_before, self.new.work - new_before
            per_row = old_work / end
            most_wasted = HARMLESS + MOST_WASTED * per_row * len(ids)
            left = left or new_work - old_work > most_wasted
        sampled = TrialCounts(len(sample), old_work, new_work)
        is_bad = left
        left = left or new_work > old_work
        new_before = self.new.work
        taken: dict[Lanes, list[_Taken]] = {self.old: [], self.new: []}
        for begin, end in _growing(len(others), max(FIRST_HEADS, len(others) // MOST_PIECES)):
            left = left or self.new.work - new_before - per_row * begin > most_wasted
            lanes, piece = self.old if left else self.new, np.sort(others[begin:end])
            before = lanes.work
            yield Piece(lanes, piece)
            taken[lanes].append(_Taken(piece, lanes.work - before))
        measured = sampled
        if not is_bad:
            by_new = (yield from self._compare(taken[self.new], self.old, sampled.reversed())).reversed()
            measured += by_new
            if by_new.new_work <= by_new.old_work:  # Else the new order is known to be worse.
                measured += yield from self._compare(taken[self.old], self.new, sampled)
        if measured.rows > sampled.rows:  # The rows that cost most have gone along both orders, so they decide.
            self._counts[head] += measured.for_rows(sampled.rows)
        else:
            self._counts[head] += replace(sampled, left=int(left))

    def _compare(
        self, pieces: Sequence[_Taken], other: Lanes, sampled: TrialCounts
    ) -> Generator[Piece, None, TrialCounts]:
        """What rows have cost by the order that they took (as the old one), and would cost by the other (as the new).

        Nothing if they have not cost far more than the sampled rows. Else the pieces that cost most go along the other
        order, too, until they are most of the excess, or have taken as much work as a trial may waste. What costs no
        more than sampled rows is taken to be like them, and the excess to be like that of these pieces.
        """
        rows, work = sum(len(piece.ids) for piece in pieces), sum(piece.work for piece in pieces)
        by_taken, by_other = sampled.old_work / sampled.rows, sampled.new_work / sampled.rows
        excess = work - by_taken * rows
        if excess <= LEAST_EXCESS + (FAR_MORE - 1) * by_taken * rows:
            return TrialCounts()
        most, excess_taken, excess_other = HARMLESS + MOST_WASTED * work, 0.0, 0.0
        before = other.work
        for piece in sorted(pieces, key=lambda piece: by_taken * len(piece.ids) - piece.work):
            if other.work - before > most or excess_taken > excess / 2:
                break
            piece_before = other.work
            for begin, end in _growing(len(piece.ids)):
                if other.work - piece_before <= piece.work + most:
                    yield Piece(other, piece.ids[begin:end], emits=False)
            excess_taken += piece.work - by_taken * len(piece.ids)
            excess_other += other.work - piece_before - by_other * len(piece.ids)
        by_the_other = by_other * rows + excess * max(0.0, excess_other) / excess_taken
        return TrialCounts(rows, work, round(by_the_other))


def _growing(rows: int, most: int = HEADS_AT_ONCE) -> Iterator[tuple[int, int]]:
    """First and last row of each piece of some rows; each has twice as many as the one before, up to a limit."""
    begin, size = 0, FIRST_HEADS
    while begin < rows:
        yield begin, min(begin + size, rows)
        begin, size = begin + size, min(2 * size, most)


def _sequences(program: SiteProgram, head: str) -> list[tuple[Partitioning | None, list[Join]]]:
    """The joins that the rows of a stream go through, one after the other, in each part of the keys."""
    by_part = [(partition, _sequence(part_program, head)) for partition, part_program in program.parts]
    return [(None, _sequence(program, head)), *by_part]


def _sequence(program: SiteProgram, head: str) -> list[Join]:
    joins = {join.probe: join for join in program.all_of(Join)}
    sequence, stream = [], head
    while stream in joins:
        sequence.append(joins[stream])
        stream = joins[stream].result
    return sequence
