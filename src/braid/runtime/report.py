"""What a shard reports of each batch: the one source of `progress()`, `statistics()`, `snapshot()` and adaptation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from braid.adapt.observation import Observation
from braid.errors import ModelError
from braid.model.plan import Written


@dataclass(frozen=True, slots=True)
class JoinReport:
    """How often the window of `stream` was probed by combinations of the streams `bound`, and with how many matches."""

    bound: tuple[str, ...]
    stream: str
    probes: int
    matches: int


@dataclass(frozen=True, slots=True)
class StreamProgress:
    """Whether a stream brought anything in the batch, be it only the news how far it has come, and its watermark."""

    heard: bool
    watermark: int


@dataclass(frozen=True, slots=True)
class StateSize:
    """What the store of a shard holds after the batch."""

    rows: int = 0
    bytes: int = 0
    segments: int = 0


@dataclass(frozen=True, slots=True)
class Seconds:
    """Where the time of a batch went: joining, observing, waiting for the store, and all of it."""

    join: float = 0.0
    watch: float = 0.0
    store: float = 0.0
    total: float = 0.0


@dataclass(frozen=True)
class ShardReport:
    """One batch of one shard.

    `engine` says where the engine came from: "new", "rebuilt" from the store, or as its cache calls it. `waiting` are
    results that later rows may still exclude. `rejected_messages` counts since the query began.
    """

    plan: Written
    observation: Observation
    joins: tuple[JoinReport, ...]
    progress: Mapping[str, StreamProgress]
    rows_out: int
    waiting: int
    rejected_messages: int
    state: StateSize
    engine: str
    seconds: Seconds
    shard: int = 0

    def to_json(self) -> str:
        content = {name: getattr(self, name) for name in PLAIN_FIELDS}
        return json.dumps(
            {
                **content,
                "observation": self.observation.to_plain(),
                "joins": [[*join.bound, join.stream, join.probes, join.matches] for join in self.joins],
                "progress": {stream: [part.heard, part.watermark] for stream, part in self.progress.items()},
                "state": asdict(self.state),
                "seconds": {name: round(spent, 6) for name, spent in asdict(self.seconds).items()},
            }
        )

    @classmethod
    def from_json(cls, text: str) -> ShardReport:
        """The report that was written; anything else is a `ModelError`."""
        try:
            content: dict[str, Any] = json.loads(text)
            return cls(
                **{name: content[name] for name in PLAIN_FIELDS},
                observation=Observation.from_plain(content["observation"]),
                joins=tuple(_join(values) for values in content["joins"]),
                progress={stream: StreamProgress(*values) for stream, values in content["progress"].items()},
                state=StateSize(**content["state"]),
                seconds=Seconds(**content["seconds"]),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as problem:
            raise ModelError(f"this is no report of a shard: {problem!r} in {text[:200]!r}") from problem


PLAIN_FIELDS = ("plan", "rows_out", "waiting", "rejected_messages", "engine", "shard")
"""Fields that JSON holds as they are."""


def _join(values: list[Any]) -> JoinReport:
    *bound, stream, probes, matches = values
    return JoinReport(tuple(bound), stream, probes, matches)
