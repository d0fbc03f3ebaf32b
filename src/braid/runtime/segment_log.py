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
"""The fewest segments of similar size that are merged into one.

So a row is only written again when its segment becomes about 8 times as large.
"""

SIMILAR = FEWEST_MERGED // 2
"""Two segments are of similar size if the larger is at most this many times as large."""

SMALL_MERGED = 512 << 10
"""The most bytes of a merged segment while a stream has at most `MANY` segments."""

LARGEST_MERGED = 4 << 20
"""The most bytes of a merged segment while a stream has more than `MANY` segments.

Every step goes through all entries of the manifest, so there must not be too many of them.
"""

MANY = 64
"""A stream with more segments than this gets larger merged segments, and so fewer of them."""


@dataclass(frozen=True, slots=True)
class LoggedStream:
    """What the log must know of a stream: the source number in its keys, and the name of its event-time column.

    `columns` are those that are read. Segments may have more of them, if an earlier query on the checkpoint had.
    """

    number: int
    time: str
    columns: tuple[str, ...] | None = None


def read_manifest(store: Store) -> Manifest | None:
    """The manifest of the last committed step; None before the first."""
    data = store.get(MANIFEST)
    return None if data is None else Manifest.from_json(data)


def write_manifest(store: Store, manifest: Manifest) -> None:
    store.put(MANIFEST, manifest.to_json().encode())


class SegmentLog:
    """The segments of one shard, by stream. The manifest lists the segments that the store holds."""

    def __init__(self, store: Store, manifest: Manifest, streams: Mapping[str, LoggedStream]) -> None:
        self._store = store
        self._manifest = manifest
        self._streams = streams

    def add(self, segment: Segment, watermark: int, end: int) -> None:
        """Write a segment to the store. Rows older than `watermark` are late; all lifetimes end by `end`."""
        data = segment.to_bytes()
        number = self._manifest.next_number
        entry = SegmentEntry(number, segment.rows.num_rows, len(data), segment.newest, end, watermark)
        self._manifest.next_number += 1
        self._manifest.entries.setdefault(segment.stream, []).append(entry)
        self._store.put(self._key(segment.stream, entry), data)

    def segments(self, stream: str) -> Iterator[Segment]:
        """The segments of a stream, with the rows that a rebuilt engine needs."""
        for entry in self._manifest.entries.get(stream, []):
            yield Segment(stream, self._read(stream, entry))

    def merge(self, stream: str) -> None:
        """Merge the newest segments once there are many of similar size, as a log-structured store does."""
        entries = self._manifest.entries.get(stream, [])
        while count := _mergeable(entries):
            merged = entries[-count:]
            del entries[-count:]
            rows = pa.concat_batches([self._read(stream, entry) for entry in merged])
            for entry in merged:
                self._store.remove(self._key(stream, entry))
            segment = Segment(stream, rows, newest=max(entry.newest for entry in merged))
            # `_read` has left out late rows, so the merged segment needs no watermark.
            self.add(segment, -FOREVER, max(entry.end for entry in merged))

    def replace(self, stream: str, rows: pa.RecordBatch) -> None:
        """Put these rows in the place of all segments of a stream."""
        entries = self._manifest.entries.pop(stream, [])
        for entry in entries:
            self._store.remove(self._key(stream, entry))
        row_bytes = sum(entry.size for entry in entries) / max(1, sum(entry.rows for entry in entries))
        most_rows = max(1, int(LARGEST_MERGED / max(row_bytes, 1)))
        end = max((entry.end for entry in entries), default=FOREVER)
        for first in range(0, rows.num_rows, most_rows):
            piece = rows.slice(first, most_rows)
            newest = int(event_times(piece.column(self._streams[stream].time)).max())
            self.add(Segment(stream, piece, newest=newest), -FOREVER, end)

    def forget(self, stream: str, horizon: int) -> None:
        """Remove segments that have ended by `horizon`, and segments whose rows are all older than needed."""
        needed_since = self._needed_since(stream)
        remaining = []
        for entry in self._manifest.entries.get(stream, []):
            if entry.end <= horizon or entry.newest < needed_since:
                self._store.remove(self._key(stream, entry))
            else:
                remaining.append(entry)
        self._manifest.entries[stream] = remaining

    def _read(self, stream: str, entry: SegmentEntry) -> pa.RecordBatch:
        data = self._store.get(self._key(stream, entry))
        if data is None:
            raise BraidError(
                f"segment {entry.number} of source {self._streams[stream].number} is missing from the checkpoint; it "
                "was damaged, or written by something else: start on a new checkpoint and a new place for the results"
            )
        return self.needed_rows(stream, entry, data)

    def needed_rows(self, stream: str, entry: SegmentEntry, data: bytes) -> pa.RecordBatch:
        """The rows of the segment `data` that were not late and are still needed."""
        rows = Segment.from_bytes(data).rows
        columns = self._streams[stream].columns
        if columns is not None and tuple(rows.schema.names) != columns:
            rows = rows.select(columns)
        oldest = max(entry.watermark, self._needed_since(stream))
        needed = event_times(rows.column(self._streams[stream].time)) >= oldest
        return rows if needed.all() else rows.filter(pa.array(needed))

    def _needed_since(self, stream: str) -> int:
        return self._manifest.needed_since.get(stream, -FOREVER)

    def _key(self, stream: str, entry: SegmentEntry) -> Key:
        return self._streams[stream].number, entry.number


def _mergeable(entries: list[SegmentEntry]) -> int:
    """How many of the newest entries to merge into one; 0 if too few are of similar size.

    Goes from the newest entry to older ones, and counts how many entries in a row are of similar size. Newer entries
    that are smaller are merged together with them. Otherwise one small entry that happens to be the newest at every
    merge would keep the older entries from ever being merged.
    """
    most_bytes = LARGEST_MERGED if len(entries) > MANY else SMALL_MERGED
    count = 0
    total_bytes = 0
    similar = 0
    similar_size = 0
    for entry in reversed(entries):
        total_bytes += entry.size
        if total_bytes > most_bytes:
            break
        if entry.size > SIMILAR * similar_size:
            if similar >= FEWEST_MERGED:
                break
            similar = 0
            similar_size = entry.size
        count += 1
        similar += 1
    return count if similar >= FEWEST_MERGED else 0
