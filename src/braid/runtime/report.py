"""What a shard reports of each batch; `progress()`, `statistics()`, `snapshot()` and adaptation all read these."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass, field
from typing import Any

from braid.adapt.observation import Observation
from braid.errors import ModelError
from braid.model.plan import Written
from braid.model.window import FOREVER


@dataclass(frozen=True, slots=True)
class JoinReport:
    """How often combinations of the streams `bound` have probed, and with how many matches.

    `probed` is a stream whose window they probed, or several streams whose combinations a tree keeps.
    """

    bound: tuple[str, ...]
    probed: tuple[str, ...]
    probes: int
    matches: int

    @property
    def stream(self) -> str | None:
        """The stream whose window was probed; None for kept combinations."""
        return self.probed[0] if len(self.probed) == 1 else None


@dataclass(frozen=True, slots=True)
class StreamProgress:
    """One stream after a batch: whether it brought anything (`active`), its watermark, and its newest event time.

    A stream is active if it brought rows, also if none of them came to this shard. All rows of all shards since the
    query was started for the first time count for `newest`.
    """

    active: bool
    watermark: int
    newest: int = -FOREVER


@dataclass(frozen=True, slots=True)
class StateSize:
    """How much the store of a shard holds after the batch."""

    rows: int = 0
    bytes: int = 0
    segments: int = 0


@dataclass(frozen=True, slots=True)
class Seconds:
    """Where the time of a batch went: joining, observing, waiting for the store; and the total."""

    join: float = 0.0
    watch: float = 0.0
    store: float = 0.0
    total: float = 0.0


@dataclass(frozen=True)
class ShardReport:
    """The report of one shard on one batch.

    `against` is the plan that `plan` was on trial against, if it was, and `expected` what was expected of the trial
    (see `Expectation.to_plain`). `engine` says where the engine came from: "new", "rebuilt" from the store, or the word
    of the engine cache. `waiting` counts results and rows that wait for a
    watermark. `rejected_messages` counts control messages since the query was started for the first time. `routed_by`
    is the version of the table of spread keys by which the rows of the batch were routed, and `told` the newest
    version that is in the checkpoint. `copied` counts copies of rows whose key is spread, by alias; one shard does.
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
    against: Written | None = None
    expected: list[float | None] | None = None
    routed_by: int = 0
    told: int = 0
    copied: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> str:
        content = {name: getattr(self, name) for name in PLAIN_FIELDS}
        return json.dumps(
            {
                **content,
                "observation": self.observation.to_plain(),
                "joins": [astuple(join) for join in self.joins],
                "progress": {
                    alias: [progress.active, progress.watermark, progress.newest]
                    for alias, progress in self.progress.items()
                },
                "state": asdict(self.state),
                "seconds": {name: round(spent, 6) for name, spent in asdict(self.seconds).items()},
            }
        )

    @classmethod
    def from_json(cls, text: str) -> ShardReport:
        """The report that `to_json` wrote; `ModelError` for any other text."""
        try:
            content: dict[str, Any] = json.loads(text)
            return cls(
                **{name: content[name] for name in PLAIN_FIELDS},
                observation=Observation.from_plain(content["observation"]),
                joins=tuple(
                    JoinReport(tuple(bound), tuple(probed), *counts) for bound, probed, *counts in content["joins"]
                ),
                progress={alias: StreamProgress(*values) for alias, values in content["progress"].items()},
                state=StateSize(**content["state"]),
                seconds=Seconds(**content["seconds"]),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as problem:
            raise ModelError(f"this is no report of a shard: {problem!r} in {text[:200]!r}") from problem


PLAIN_FIELDS = (
    "plan",
    "against",
    "expected",
    "rows_out",
    "waiting",
    "rejected_messages",
    "engine",
    "shard",
    "routed_by",
    "told",
    "copied",
)
"""The fields of `ShardReport` whose values JSON can hold directly."""
