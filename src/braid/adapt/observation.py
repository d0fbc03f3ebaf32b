"""Observations: what the shards of a query count in one batch, for the monitor. Counts of shards add up."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from braid.adapt.sketch import KeySketch
from braid.errors import ModelError

Pair = tuple[str, str]
"""A stream whose new rows probe, and the one whose window they probe."""

KeyColumn = tuple[str, int]
"""A stream and the number of an attribute class."""


@dataclass(frozen=True, slots=True)
class StreamSeen:
    """The rows of one stream in a batch: received, entered into their window, too late, and held in the window now.

    `untimed` of the received rows had no event time. `size` is their size in bytes. `newest` is the newest event time,
    and `behind` the longest that a row was behind a newer row before it, both in microseconds; None if not known.
    """

    received: int = 0
    entered: int = 0
    late: int = 0
    held: int = 0
    size: int = 0
    newest: int | None = None
    behind: int | None = None
    untimed: int = 0

    @property
    def timed(self) -> int:
        """Rows received that have an event time."""
        return self.received - self.untimed

    def __add__(self, other: StreamSeen) -> StreamSeen:
        return StreamSeen(
            self.received + other.received,
            self.entered + other.entered,
            self.late + other.late,
            self.held + other.held,
            self.size + other.size,
            _largest(self.newest, other.newest),
            _largest(self.behind, other.behind),
            self.untimed + other.untimed,
        )


@dataclass(frozen=True, slots=True)
class PairSeen:
    """The probes of a window by rows of a single other stream, and the matches they had."""

    probes: float
    matches: float

    def __add__(self, other: PairSeen) -> PairSeen:
        return PairSeen(self.probes + other.probes, self.matches + other.matches)


@dataclass(frozen=True)
class Observation:
    """The observation of one batch. `work` counts the probes of the running plan and their matches."""

    streams: Mapping[str, StreamSeen]
    pairs: Mapping[Pair, PairSeen] = field(default_factory=dict)
    keys: Mapping[KeyColumn, KeySketch] = field(default_factory=dict)
    work: int = 0

    def rows(self, aliases: Iterable[str]) -> int:
        """The number of rows that entered the windows of some streams."""
        return sum(self.streams[alias].entered for alias in aliases if alias in self.streams)

    @classmethod
    def merged(cls, observations: Iterable[Observation]) -> Observation:
        """The observation of a batch, from the observations of all shards of a query."""
        streams: dict[str, StreamSeen] = {}
        pairs: dict[Pair, PairSeen] = {}
        keys: dict[KeyColumn, KeySketch] = {}
        work = 0
        for observation in observations:
            for alias, stream in observation.streams.items():
                streams[alias] = streams.get(alias, StreamSeen()) + stream
            for ends, pair in observation.pairs.items():
                pairs[ends] = pairs[ends] + pair if ends in pairs else pair
            for key, sketch in observation.keys.items():
                keys.setdefault(key, KeySketch()).merge(sketch)
            work += observation.work
        return cls(streams, pairs, keys, work)

    def to_plain(self) -> dict[str, Any]:
        """The observation as values that JSON can hold; `from_plain` reads them."""
        return {
            "streams": {alias: asdict(seen) for alias, seen in self.streams.items()},
            "pairs": [[*ends, round(seen.probes, 3), round(seen.matches, 3)] for ends, seen in self.pairs.items()],
            "keys": [[*key, base64.b64encode(sketch.to_bytes()).decode("ascii")] for key, sketch in self.keys.items()],
            "work": self.work,
        }

    @classmethod
    def from_plain(cls, content: Mapping[str, Any]) -> Observation:
        """The observation that `to_plain` wrote. Raises a `ModelError` for anything else."""
        try:
            return cls(
                {alias: StreamSeen(**seen) for alias, seen in content["streams"].items()},
                {(head, stream): PairSeen(probes, matches) for head, stream, probes, matches in content["pairs"]},
                {(alias, number): _sketch(data) for alias, number, data in content["keys"]},
                content["work"],
            )
        except (ValueError, KeyError, TypeError, AttributeError) as problem:
            raise ModelError(f"this is not an observation of a batch: {problem!r} in {content!r:.200}") from problem


def _sketch(data: str) -> KeySketch:
    return KeySketch.from_bytes(base64.b64decode(data, validate=True))


def _largest(left: int | None, right: int | None) -> int | None:
    known = [figure for figure in (left, right) if figure is not None]
    return max(known, default=None)
