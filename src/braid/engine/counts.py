"""What an engine counts: rows of streams, probes and matches of joins, kept combinations, results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class StreamCounts:
    """Rows of one source: received, dropped (late or without an event time), entered into the window, held there now.

    `received`, `late`, `untimed` and `entered` count since the start.
    """

    received: int
    late: int
    untimed: int
    entered: int
    held: int


@dataclass(frozen=True, slots=True)
class JoinCounts:
    """How many rows of `probe` have probed `stream` since the plan began, and how many matches they found.

    `bound` are the sources that rows of `probe` combine, `probed` those of `stream`. `candidates` counts everything
    that was looked at: matches, and rows that the index found but a condition ruled out. `work` counts candidates, and
    the places of the index that were looked into for them.
    """

    probe: str
    bound: tuple[str, ...]
    stream: str
    probed: tuple[str, ...]
    probes: int
    matches: int
    candidates: int
    work: int


@dataclass(frozen=True, slots=True)
class TrialCounts:
    """What `rows` sampled rows have cost by an old and by a new order, and how many steps have left the new order.

    If the sample lacks the rows that cost most, it is what as many rows cost that are like all rows.
    """

    rows: int = 0
    old_work: int = 0
    new_work: int = 0
    left: int = 0

    def __add__(self, other: TrialCounts) -> TrialCounts:
        return TrialCounts(
            self.rows + other.rows,
            self.old_work + other.old_work,
            self.new_work + other.new_work,
            self.left + other.left,
        )

    def __sub__(self, other: TrialCounts) -> TrialCounts:
        return TrialCounts(
            self.rows - other.rows,
            self.old_work - other.old_work,
            self.new_work - other.new_work,
            self.left - other.left,
        )

    def for_rows(self, rows: int) -> TrialCounts:
        """The same for another number of rows that are like these."""
        share = rows / self.rows
        return replace(self, rows=rows, old_work=round(self.old_work * share), new_work=round(self.new_work * share))

    def reversed(self) -> TrialCounts:
        """The same with the orders exchanged."""
        return replace(self, old_work=self.new_work, new_work=self.old_work)


@dataclass(frozen=True, slots=True)
class JoinStateCounts:
    """How many combinations a join state holds now, and whether none is missing from it."""

    held: int
    complete: bool


@dataclass(frozen=True, slots=True)
class Counts:
    """All counts of an engine: by source, by join of the current plan, by join state of the current plan.

    `emitted` counts results since the start. `waiting` is what waits for a watermark: results and rows that rows still
    to come may match, and rows that are to be counted in the order of event time. `trials` are the streams whose new
    rows are divided between two orders. `completion` is the part of the work of all joins that completed join states.
    """

    streams: Mapping[str, StreamCounts]
    joins: tuple[JoinCounts, ...]
    emitted: int
    join_states: Mapping[str, JoinStateCounts]
    waiting: int = 0
    trials: Mapping[str, TrialCounts] = field(default_factory=dict)
    completion: int = 0
