"""What an engine counts: rows of streams, probes and matches of joins, kept combinations, results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


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
    """How many rows of `probe` have probed `stream` since the plan began, and how many matches they found."""

    probe: str
    stream: str
    probes: int
    matches: int


@dataclass(frozen=True, slots=True)
class JoinStateCounts:
    """How many combinations a join state holds now, and whether none is missing from it."""

    held: int
    complete: bool


@dataclass(frozen=True, slots=True)
class Counts:
    """All counts of an engine: by source, by join of the current plan, by join state of the current plan.

    `emitted` counts results since the start. `waiting` is what waits for a watermark: results that a row still to come
    may exclude, and rows that are to be counted in the order of event time.
    """

    streams: Mapping[str, StreamCounts]
    joins: tuple[JoinCounts, ...]
    emitted: int
    join_states: Mapping[str, JoinStateCounts]
    waiting: int = 0
