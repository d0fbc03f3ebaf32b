"""The manifest of a shard: everything its store holds except the rows themselves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from braid.errors import BraidError
from braid.model.plan import Written

FORMAT = 8
"""The version of the manifest's format, which every step writes."""

OLDEST_FORMAT = 7
"""The oldest format that can be read. From here on, every release reads what the releases before it have written."""


def check_format(stored: int | None) -> None:
    """Refuse a checkpoint of a format that cannot be read with a `BraidError`."""
    if stored is not None and stored > FORMAT:
        raise BraidError(
            f"the checkpoint was written by a newer version of Braid: it has format {stored}, and this version reads "
            f"formats {OLDEST_FORMAT} to {FORMAT}; use the version that wrote it, or a newer one"
        )
    if stored is None or stored < OLDEST_FORMAT:
        raise BraidError(
            f"the checkpoint has format {stored} and this version of Braid reads formats {OLDEST_FORMAT} to {FORMAT}; "
            "use the version that wrote it, or start on a new checkpoint and a new place for the results"
        )


@dataclass(frozen=True, slots=True)
class SegmentEntry:
    """A segment in the store. `size` is in bytes; `newest`, `end` and `watermark` are event times in microseconds.

    `newest` is the event time of the newest row, and `end` the end of the last lifetime. Rows older than `watermark`
    were late when they arrived.
    """

    number: int
    rows: int
    size: int
    newest: int
    end: int
    watermark: int


@dataclass
class Manifest:
    """What a shard must know to go on from its store.

    `against` is the plan that `plan` is on trial against, if it is, and `expected` what is expected of the trial (see
    `Expectation.to_plain`). `engine` is the token under which the last step
    left its engine (see `EngineCache`). `next_number` is the number of the next segment. `newest`, `watermarks` and
    `needed_since` are event times by stream: of the newest row, the watermark, and the time before which no row is
    needed any more. `alive` is the number of rows of a stream that were alive when it was last compacted. `rejected`
    counts rejected control messages. `unsampled` is the work that samples have not used up; None before the first step.
    `routed_by` is the version of the table of spread keys that the last batch was routed by, and
    `told` the newest one that messages have told of.
    """

    fingerprint: Mapping[str, Any]
    plan: Written
    against: Written | None = None
    expected: list[float | None] | None = None
    engine: str = ""
    step: int = 0
    next_number: int = 1
    newest: dict[str, int] = field(default_factory=dict)
    watermarks: dict[str, int] = field(default_factory=dict)
    needed_since: dict[str, int] = field(default_factory=dict)
    entries: dict[str, list[SegmentEntry]] = field(default_factory=dict)
    alive: dict[str, int] = field(default_factory=dict)
    rejected: int = 0
    unsampled: int | None = None
    routed_by: int = 0
    told: int = 0
    format: int = FORMAT

    @property
    def all_entries(self) -> list[SegmentEntry]:
        return [entry for entries in self.entries.values() for entry in entries]

    def to_json(self) -> str:
        entries = {stream: list(map(_values, stream_entries)) for stream, stream_entries in self.entries.items()}
        return json.dumps(vars(self) | {"entries": entries})

    @classmethod
    def from_json(cls, data: bytes | str) -> Manifest:
        """The manifest that `to_json` wrote; `BraidError` if it has another format."""
        content = json.loads(data)
        check_format(content.get("format", content.get("version")))  # Earlier formats called it "version".
        entries = {
            stream: [SegmentEntry(*values) for values in stream_entries]
            for stream, stream_entries in content.pop("entries").items()
        }
        return cls(**content | {"entries": entries, "format": FORMAT})


def _values(entry: SegmentEntry) -> list[int]:
    return [entry.number, entry.rows, entry.size, entry.newest, entry.end, entry.watermark]
