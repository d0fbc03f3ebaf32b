"""Observations: what the shards of a query count in one batch, for the monitor. Counts of shards add up."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from math import sqrt
from typing import Any

from braid.adapt.sketch import KeySketch
from braid.errors import ModelError
from braid.model.statistics import Prefix

SAMPLING = 0.2
"""By default, samples and comparisons of plans take at most this share of all other work."""

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
class FanoutSeen:
    """The combinations of some streams that new rows of one of them made, counted or scaled up from a sample.

    `variance` is that of the number of combinations. Of the rows or combinations that probe last, `sampled` were looked
    at; if all of them had found one match each, there would be `possible` combinations. `pairs` is the number of pairs
    of rows that were compared, if there are two streams; else 0.
    """

    rows: float
    combinations: float
    variance: float = 0.0
    pairs: float = 0.0
    sampled: float = 0.0
    possible: float = 0.0

    @property
    def most(self) -> float:
        """The most combinations that there may be: two standard deviations more, and some that a sample has missed.

        A sample may well show no match if one in half as many rows as it has finds one.
        """
        missed = 2 * self.possible / self.sampled if self.sampled else 0.0
        return self.combinations + 2 * sqrt(self.variance) + missed

    def __add__(self, other: FanoutSeen) -> FanoutSeen:
        return FanoutSeen(
            self.rows + other.rows,
            self.combinations + other.combinations,
            self.variance + other.variance,
            self.pairs + other.pairs,
            self.sampled + other.sampled,
            self.possible + other.possible,
        )

    def scaled(self, factor: float) -> FanoutSeen:
        """The same fan-out with another weight."""
        return FanoutSeen(
            self.rows * factor,
            self.combinations * factor,
            self.variance * factor**2,
            self.pairs * factor,
            self.sampled * factor,
            self.possible * factor,
        )


@dataclass(frozen=True, slots=True)
class TrialSeen:
    """What `rows` sampled rows of a stream cost by an old and by a new order.

    `left` counts the shards that did not let the new order take the other rows, or not all of them.
    """

    rows: int = 0
    old_work: int = 0
    new_work: int = 0
    left: int = 0

    def __add__(self, other: TrialSeen) -> TrialSeen:
        return TrialSeen(
            self.rows + other.rows,
            self.old_work + other.old_work,
            self.new_work + other.new_work,
            self.left + other.left,
        )


@dataclass(frozen=True)
class Observation:
    """The observation of one batch. `work` counts the probes of the running plan and the rows that they looked at.

    `trials` are the streams for which a new order is on trial. `completion` is the part of the work that completed join
    states after a plan change, which comes only once. Unless it `is_sampled`, it has only what was counted anyway.
    """

    streams: Mapping[str, StreamSeen]
    fanouts: Mapping[Prefix, FanoutSeen] = field(default_factory=dict)
    keys: Mapping[KeyColumn, KeySketch] = field(default_factory=dict)
    work: int = 0
    trials: Mapping[str, TrialSeen] = field(default_factory=dict)
    completion: int = 0
    is_sampled: bool = True

    def rows(self, aliases: Iterable[str]) -> int:
        """The number of rows that entered the windows of some streams."""
        return sum(self.streams[alias].entered for alias in aliases if alias in self.streams)

    @classmethod
    def merged(cls, observations: Iterable[Observation]) -> Observation:
        """The observation of a batch, from the observations of all shards of a query."""
        streams: dict[str, StreamSeen] = {}
        fanouts: dict[Prefix, FanoutSeen] = {}
        keys: dict[KeyColumn, KeySketch] = {}
        trials: dict[str, TrialSeen] = {}
        work = completion = 0
        is_sampled = False
        for observation in observations:
            for alias, stream in observation.streams.items():
                streams[alias] = streams.get(alias, StreamSeen()) + stream
            for prefix, fanout in observation.fanouts.items():
                fanouts[prefix] = fanouts[prefix] + fanout if prefix in fanouts else fanout
            for key, sketch in observation.keys.items():
                keys.setdefault(key, KeySketch()).merge(sketch)
            for head, trial in observation.trials.items():
                trials[head] = trials[head] + trial if head in trials else trial
            work += observation.work
            completion += observation.completion
            is_sampled |= observation.is_sampled
        return cls(streams, fanouts, keys, work, trials, completion, is_sampled)

    def to_plain(self) -> dict[str, Any]:
        """The observation as values that JSON can hold; `from_plain` reads them."""
        return {
            "streams": {alias: _figures(seen) for alias, seen in self.streams.items()},
            "fanouts": [
                [head, sorted(bound), *(round(figure, 3) for figure in _figures(seen).values())]
                for (head, bound), seen in self.fanouts.items()
            ],
            "keys": [[*key, base64.b64encode(sketch.to_bytes()).decode("ascii")] for key, sketch in self.keys.items()],
            "work": self.work,
            "completion": self.completion,
            "is_sampled": self.is_sampled,
            "trials": {head: list(_figures(seen).values()) for head, seen in self.trials.items()},
        }

    @classmethod
    def from_plain(cls, content: Mapping[str, Any]) -> Observation:
        """The observation that `to_plain` wrote. Raises a `ModelError` for anything else."""
        try:
            return cls(
                {alias: StreamSeen(**seen) for alias, seen in content["streams"].items()},
                {(head, frozenset(bound)): FanoutSeen(*figures) for head, bound, *figures in content["fanouts"]},
                {(alias, class_number): _sketch(data) for alias, class_number, data in content["keys"]},
                content["work"],
                {head: TrialSeen(*figures) for head, figures in content["trials"].items()},
                content["completion"],
                content["is_sampled"],
            )
        except (ValueError, KeyError, TypeError, AttributeError) as problem:
            raise ModelError(f"this is not an observation of a batch: {problem!r} in {content!r:.200}") from problem


def _figures(seen: StreamSeen | FanoutSeen | TrialSeen) -> dict[str, Any]:
    """The figures by name. `asdict` would copy each of them deeply, in every batch of every shard."""
    return {figure.name: getattr(seen, figure.name) for figure in fields(seen)}


def _sketch(data: str) -> KeySketch:
    return KeySketch.from_bytes(base64.b64decode(data, validate=True))


def _largest(left: int | None, right: int | None) -> int | None:
    known = [figure for figure in (left, right) if figure is not None]
    return max(known, default=None)
