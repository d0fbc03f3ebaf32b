"""The manifest of a shard: everything its store holds except the rows themselves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from braid.errors import BraidError
from braid.model.plan import Written

FORMAT = 5
"""The version of the manifest's format. A shard refuses a store with another version."""


@dataclass(frozen=True, slots=True)
class SegmentEntry:
    """A segment in the store. Event times are in microseconds.

    `size` is in bytes. `end` is when the last of its rows ends. Rows older than `watermark` were late when they came.
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

    `engine` is the token under which the last step left its engine (see `EngineCache`). `next_number` is the number of
    the next segment. `newest`, `watermarks` and `needed_since` are event times by stream: of its newest row, of its
    watermark, and of the oldest row that is still needed. `rejected` counts control messages.
    """

    fingerprint: Mapping[str, Any]
    plan: Written
    engine: str = ""
    step: int = 0
    next_number: int = 1
    newest: dict[str, int] = field(default_factory=dict)
    watermarks: dict[str, int] = field(default_factory=dict)
    needed_since: dict[str, int] = field(default_factory=dict)
    entries: dict[str, list[SegmentEntry]] = field(default_factory=dict)
    rejected: int = 0
    format: int = FORMAT

    @property
    def all_entries(self) -> list[SegmentEntry]:
        return [entry for entries in self.entries.values() for entry in entries]

    def to_json(self) -> str:
        entries = {stream: [_values(entry) for entry in listed] for stream, listed in self.entries.items()}
        return json.dumps(vars(self) | {"entries": entries})

    @classmethod
    def from_json(cls, data: bytes | str) -> Manifest:
        """A manifest as it was written; `BraidError` if it has another format."""
        content = json.loads(data)
        written = content.get("format", content.get("version"))  # Earlier formats called it "version".
        if written != FORMAT:
            raise BraidError(
                f"the checkpoint was written in format {written} and this is format {FORMAT}; "
                "go on with the Braid that wrote it, or start on a new checkpoint and a new place for the results"
            )
        listed = content.pop("entries").items()
        entries = {stream: [SegmentEntry(*values) for values in entries] for stream, entries in listed}
        return cls(**content, entries=entries)


def _values(entry: SegmentEntry) -> list[int]:
    return [entry.number, entry.rows, entry.size, entry.newest, entry.end, entry.watermark]
