"""What was seen of a query in one batch: counts that add up over its shards, on their way to the monitor."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from braid.adapt.sketch import KeySketch
from braid.errors import ModelError

Pair = tuple[str, str]
"""A stream whose new rows probe, and the one whose window they probe."""

Key = tuple[str, int]
"""A stream and the number of an attribute class."""


@dataclass(frozen=True, slots=True)
class StreamSeen:
    """Rows of one stream: how many came, entered their window, came too late, and are in the window now.

    Of those received, `untimed` had no event time. `size` is in bytes. `newest` is an event time and `behind` the
    longest time that a row came after a newer one, both in microseconds; None if the batch does not tell.
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
    """So many probes of a window by rows of another stream alone had so many matches."""

    probes: float
    matches: float

    def __add__(self, other: PairSeen) -> PairSeen:
        return PairSeen(self.probes + other.probes, self.matches + other.matches)


@dataclass(frozen=True)
class Observation:
    """One batch. `work` counts the probes that the running plan made and the matches they had."""

    streams: Mapping[str, StreamSeen]
    pairs: Mapping[Pair, PairSeen] = field(default_factory=dict)
    keys: Mapping[Key, KeySketch] = field(default_factory=dict)
    work: int = 0

    def rows(self, aliases: Iterable[str]) -> int:
        """All rows that entered the windows of some streams."""
        return sum(self.streams[alias].entered for alias in aliases if alias in self.streams)

    @classmethod
    def merged(cls, parts: Iterable[Observation]) -> Observation:
        """What all shards of a query have seen in one batch."""
        streams: dict[str, StreamSeen] = {}
        pairs: dict[Pair, PairSeen] = {}
        keys: dict[Key, KeySketch] = {}
        work = 0
        for part in parts:
            for alias, stream in part.streams.items():
                streams[alias] = streams.get(alias, StreamSeen()) + stream
            for ends, pair in part.pairs.items():
                pairs[ends] = pairs[ends] + pair if ends in pairs else pair
            for key, sketch in part.keys.items():
                keys.setdefault(key, KeySketch()).merge(sketch)
            work += part.work
        return cls(streams, pairs, keys, work)

    def to_plain(self) -> dict[str, Any]:
        """What JSON can hold, for `from_plain`."""
        return {
            "streams": {alias: asdict(seen) for alias, seen in self.streams.items()},
            "pairs": [[*ends, round(seen.probes, 3), round(seen.matches, 3)] for ends, seen in self.pairs.items()],
            "keys": [[*key, base64.b64encode(sketch.to_bytes()).decode("ascii")] for key, sketch in self.keys.items()],
            "work": self.work,
        }

    @classmethod
    def from_plain(cls, content: Mapping[str, Any]) -> Observation:
        """The observation that `to_plain` took apart; anything else is a `ModelError`."""
        try:
            return cls(
                {alias: StreamSeen(**seen) for alias, seen in content["streams"].items()},
                {(head, stream): PairSeen(probes, matches) for head, stream, probes, matches in content["pairs"]},
                {(alias, number): _sketch(data) for alias, number, data in content["keys"]},
                content["work"],
            )
        except (ValueError, KeyError, TypeError, AttributeError) as problem:
            raise ModelError(f"this is no observation of a batch: {problem!r} in {content!r:.200}") from problem


def _sketch(data: str) -> KeySketch:
    return KeySketch.from_bytes(base64.b64decode(data, validate=True))


def _largest(left: int | None, right: int | None) -> int | None:
    known = [figure for figure in (left, right) if figure is not None]
    return max(known, default=None)
