"""What a bucket remembers between micro-batches, in Spark's state store: its segments, and one note about them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from braid.engine.lifetime import event_times
from braid.engine.segment import Segment
from braid.errors import BraidError
from braid.model.plan import Written
from braid.model.window import FOREVER

STATE = "windows"
KEY_DDL = "source int, number long"
VALUE_DDL = "payload binary"

NOTE = (-1, 0)
FEWEST_MERGED = 8
"""So many segments of about one size are merged into one: each row is written again once for every factor of this."""

ALIKE = FEWEST_MERGED // 2
"""A segment is about as large as another if it is not so many times as large."""

SMALL_MERGED = 512 << 10
"""Segments are merged until they have so many bytes, as long as a source has no more than `MANY` of them."""

LARGEST_MERGED = 4 << 20
"""With more than that they are merged until they have so many: to go through them in each batch would cost more."""

MANY = 64

VERSION = 4


class Store(Protocol):
    """The part of Spark's map state that is used."""

    def getValue(self, key: tuple[Any, ...]) -> Any: ...  # noqa: N802
    def updateValue(self, key: tuple[Any, ...], value: tuple[Any, ...]) -> None: ...  # noqa: N802
    def removeKey(self, key: tuple[Any, ...]) -> None: ...  # noqa: N802


@dataclass
class Entry:
    """A segment in the store: when it ends for good, and the watermark its rows were judged by."""

    number: int
    rows: int
    size: int
    newest: int
    end: int
    watermark: int


@dataclass
class Note:
    """Everything about a bucket but its rows.

    `since` is the oldest event time still needed of each source.
    """

    fingerprint: dict[str, Any]
    plan: Written
    token: str = ""
    step: int = 0
    next_number: int = 1
    newest: dict[str, int] = field(default_factory=dict)
    watermarks: dict[str, int] = field(default_factory=dict)
    since: dict[str, int] = field(default_factory=dict)
    entries: dict[str, list[Entry]] = field(default_factory=dict)
    rejected: int = 0
    version: int = VERSION


class TimedStore:
    """A store that adds up the time spent waiting for it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.seconds = 0.0

    def get(self, key: tuple[Any, ...]) -> Any:
        return self._timed(self._store.getValue, key)

    def put(self, key: tuple[Any, ...], value: bytes) -> None:
        self._timed(self._store.updateValue, key, (value,))

    def remove(self, key: tuple[Any, ...]) -> None:
        self._timed(self._store.removeKey, key)

    def _timed(self, call: Callable[..., Any], *arguments: Any) -> Any:
        started = time.perf_counter()
        try:
            return call(*arguments)
        finally:
            self.seconds += time.perf_counter() - started


class Memory:
    """The store of one bucket, read and written by source number and segment number."""

    def __init__(self, store: Store) -> None:
        self._store = TimedStore(store)

    @property
    def seconds(self) -> float:
        """Time spent waiting for the store."""
        return self._store.seconds

    def note(self) -> Note | None:
        found = self._store.get(NOTE)
        if found is None:
            return None
        return parse_note(bytes(found[0]))

    def write_note(self, note: Note) -> None:
        entries = {alias: [vars(entry) for entry in kept] for alias, kept in note.entries.items()}
        self._store.put(NOTE, json.dumps(vars(note) | {"entries": entries}).encode())

    def add(self, note: Note, source: int, segment: Segment, data: bytes, end: int) -> None:
        """Keep a segment that came in this step."""
        entry = Entry(note.next_number, segment.rows.num_rows, len(data), segment.newest, end, segment.watermark)
        note.next_number += 1
        note.entries.setdefault(segment.stream, []).append(entry)
        self._store.put((source, entry.number), data)

    def read(self, note: Note, alias: str, source: int, entry: Entry, time_column: str) -> pa.RecordBatch:
        """The rows of a segment that were not late, less those that are not needed any more."""
        found = self._store.get((source, entry.number))
        if found is None:
            raise BraidError(
                f"segment {entry.number} of source {source} is missing from the checkpoint; it was damaged, "
                "or written by something else: start on a new checkpoint and a new place for the results"
            )
        rows = Segment.from_bytes(bytes(found[0])).rows
        oldest = max(entry.watermark, note.since.get(alias, -FOREVER))
        kept = event_times(rows.column(time_column)) >= oldest
        return rows if kept.all() else rows.filter(pa.array(kept))

    def merge(self, note: Note, alias: str, source: int, time_column: str) -> None:
        """Merge small segments as in a log-structured store: the newest ones, when there are many of about one size."""
        entries = note.entries.get(alias, [])
        while alike := _alike(entries):
            merged = [entries.pop() for _ in range(alike)][::-1]
            rows = pa.concat_batches([self.read(note, alias, source, entry, time_column) for entry in merged])
            for entry in merged:
                self._store.remove((source, entry.number))
            segment = Segment(alias, rows, newest=max(entry.newest for entry in merged))
            self.add(note, source, segment, segment.to_bytes(), max(entry.end for entry in merged))

    def forget(self, note: Note, alias: str, source: int, horizon: int) -> None:
        """Remove segments that have ended by `horizon`, or are older than all that is needed."""
        needed = note.since.get(alias, -FOREVER)
        kept = []
        for entry in note.entries.get(alias, []):
            if entry.end <= horizon or entry.newest < needed:
                self._store.remove((source, entry.number))
            else:
                kept.append(entry)
        note.entries[alias] = kept


def parse_note(data: bytes) -> Note:
    """A note as it was written; refused if another format of it was."""
    given = json.loads(data)
    if given.get("version") != VERSION:
        raise BraidError(
            f"the checkpoint was written in format {given.get('version')} and this is format {VERSION}; "
            "go on with the Braid that wrote it, or start on a new checkpoint and a new place for the results"
        )
    entries = {alias: [Entry(**entry) for entry in kept] for alias, kept in given.pop("entries").items()}
    return Note(**given, entries=entries)


def _alike(entries: list[Entry]) -> int:
    """How many of the newest entries make one together: those of about one size, unless they are few.

    Fewer smaller ones that came after them are merged with them: otherwise one that is small, whenever it is time to
    merge, would keep all before it apart for ever.
    """
    count, alike, total, size = 0, 0, 0, 0
    most = LARGEST_MERGED if len(entries) > MANY else SMALL_MERGED
    for entry in reversed(entries):
        total += entry.size
        if total > most:
            break
        if entry.size > ALIKE * size:
            if alike >= FEWEST_MERGED:
                break
            alike, size = 0, entry.size
        count, alike = count + 1, alike + 1
    return count if alike >= FEWEST_MERGED else 0
