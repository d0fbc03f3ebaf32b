"""The segments of a shard in its store: added, read back, merged and removed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from braid.engine.input.lifetime import event_times
from braid.engine.segment import Segment
from braid.errors import BraidError
from braid.model.window import FOREVER
from braid.runtime.manifest import Manifest, SegmentEntry
from braid.runtime.store import Key, Store

MANIFEST = (-1, 0)
"""The key of the manifest."""

FEWEST_MERGED = 8
"""So many segments of similar size are merged into one. A row is written again once per factor of this in size."""

SIMILAR = FEWEST_MERGED // 2
"""A segment is of similar size to another if it is less than so many times as large."""

SMALL_MERGED = 512 << 10
"""Merged segments have at most so many bytes, while a source has no more than `MANY` segments."""

LARGEST_MERGED = 4 << 20
"""With more than `MANY` they have at most so many: going through many segments in each batch would cost more."""

MANY = 64


@dataclass(frozen=True, slots=True)
class LoggedStream:
    """What the log must know of a stream: the number that its keys have, and its column of event times."""

    number: int
    time: str


def read_manifest(store: Store) -> Manifest | None:
    """The manifest of the last committed step; None before the first."""
    data = store.get(MANIFEST)
    return None if data is None else Manifest.from_json(data)


def write_manifest(store: Store, manifest: Manifest) -> None:
    store.put(MANIFEST, manifest.to_json().encode())


class SegmentLog:
    """The segments of one shard, by stream. Its manifest lists what the store holds."""

    def __init__(self, store: Store, manifest: Manifest, streams: Mapping[str, LoggedStream]) -> None:
        self._store = store
        self._manifest = manifest
        self._streams = streams

    def add(self, segment: Segment, watermark: int, end: int) -> None:
        """Keep a segment whose rows are judged by a watermark and have all ended by `end`."""
        data = segment.to_bytes()
        number = self._manifest.next_number
        entry = SegmentEntry(number, segment.rows.num_rows, len(data), segment.newest, end, watermark)
        self._manifest.next_number += 1
        self._manifest.entries.setdefault(segment.stream, []).append(entry)
        self._store.put(self._key(segment.stream, entry), data)

    def segments(self, stream: str) -> Iterator[Segment]:
        """What is kept of a stream, as it has to be restored."""
        for entry in self._manifest.entries.get(stream, []):
            yield Segment(stream, self._read(stream, entry))

    def merge(self, stream: str) -> None:
        """Merge the newest segments once there are many of similar size, as a log-structured store does."""
        entries = self._manifest.entries.get(stream, [])
        while count := _mergeable(entries):
            merged, entries[-count:] = entries[-count:], []
            rows = pa.concat_batches([self._read(stream, entry) for entry in merged])
            for entry in merged:
                self._store.remove(self._key(stream, entry))
            segment = Segment(stream, rows, newest=max(entry.newest for entry in merged))
            # Late rows were left out by `_read`, so that no watermark needs to judge the others again.
            self.add(segment, -FOREVER, max(entry.end for entry in merged))

    def forget(self, stream: str, horizon: int) -> None:
        """Remove segments that have ended by `horizon`, or whose rows are all older than any that is needed."""
        needed_since = self._needed_since(stream)
        kept = []
        for entry in self._manifest.entries.get(stream, []):
            if entry.end <= horizon or entry.newest < needed_since:
                self._store.remove(self._key(stream, entry))
            else:
                kept.append(entry)
        self._manifest.entries[stream] = kept

    def _read(self, stream: str, entry: SegmentEntry) -> pa.RecordBatch:
        """The rows of a segment that were in time and are still needed."""
        data = self._store.get(self._key(stream, entry))
        if data is None:
            raise BraidError(
                f"segment {entry.number} of source {self._streams[stream].number} is missing from the checkpoint; it "
                "was damaged, or written by something else: start on a new checkpoint and a new place for the results"
            )
        rows = Segment.from_bytes(data).rows
        oldest = max(entry.watermark, self._needed_since(stream))
        needed = event_times(rows.column(self._streams[stream].time)) >= oldest
        return rows if needed.all() else rows.filter(pa.array(needed))

    def _needed_since(self, stream: str) -> int:
        return self._manifest.needed_since.get(stream, -FOREVER)

    def _key(self, stream: str, entry: SegmentEntry) -> Key:
        return self._streams[stream].number, entry.number


def _mergeable(entries: list[SegmentEntry]) -> int:
    """How many of the newest entries to merge into one; 0 if too few are of similar size.

    Smaller entries that came after those of similar size are merged with them. Otherwise a single small entry that
    happens to be the newest whenever it is time to merge would keep all older ones apart for ever.
    """
    count, similar, total, size = 0, 0, 0, 0
    most = LARGEST_MERGED if len(entries) > MANY else SMALL_MERGED
    for entry in reversed(entries):
        total += entry.size
        if total > most:
            break
        if entry.size > SIMILAR * size:
            if similar >= FEWEST_MERGED:
                break
            similar, size = 0, entry.size
        count, similar = count + 1, similar + 1
    return count if similar >= FEWEST_MERGED else 0
