"""Which segments a shard keeps in its store: each until no later row can join with any of its rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from braid.engine.engine import Engine
from braid.engine.input.lifetime import ends_in, event_times, lifetimes
from braid.engine.input.row_counter import RowCounter
from braid.engine.output.exclusion import TIME
from braid.engine.segment import Segment
from braid.model.query import Query
from braid.model.window import FOREVER
from braid.runtime.compaction import alive_rows, is_worth_compacting
from braid.runtime.manifest import Manifest
from braid.runtime.segment_log import LoggedStream, SegmentLog
from braid.runtime.store import Store
from braid.runtime.watermarks import Watermarks

WAITING = ""
"""Waiting results are logged like a stream with this name, which no real stream can have."""

WAITING_NUMBER = -2
"""The source number of waiting results; -1 is the manifest's."""


def logged_streams(query: Query) -> dict[str, LoggedStream]:
    """What the log of a shard must know of each stream of the query, and of waiting results."""
    logged = {
        source.declared.name: LoggedStream(source_number, source.declared.time)
        for source_number, source in enumerate(query.inputs)
    }
    return logged | {WAITING: LoggedStream(WAITING_NUMBER, TIME)}


class Retention:
    """Keeps the rows of all windows, and the results that wait, in the store of a shard.

    Each source of the query must have a stream of its own.
    """

    def __init__(self, query: Query, store: Store, manifest: Manifest, watermarks: Watermarks) -> None:
        self._query = query
        self._manifest = manifest
        self._watermarks = watermarks
        self._sources = {source.declared.name: source for source in query.inputs}
        assert len(self._sources) == len(query.inputs), "each source needs a stream of its own"
        self._log = SegmentLog(store, manifest, logged_streams(query))

    def keep(self, segment: Segment) -> None:
        """Keep a segment that has just come, unless no row will ever probe its window."""
        if segment.rows.num_rows and self._watermarks.horizon(segment.stream) < FOREVER:
            self._log.add(segment, self._watermarks.of(segment.stream), self._end(segment))

    def move_in(self, segment: Segment) -> None:
        """Keep a segment that another shard has kept: none of its rows is late."""
        if segment.rows.num_rows:
            end = segment.newest + 1 if segment.stream == WAITING else self._end(segment)
            self._log.add(segment, -FOREVER, end)

    def restore(self, engine: Engine) -> None:
        """Fill the windows of a new engine with the rows that are kept, and give it the results that wait."""
        engine.restore(self._window_segments())
        engine.restore(self._watermarks.progress())
        for segment in self._log.segments(WAITING):
            engine.wait(segment.rows)

    def update(self, engine: Engine) -> None:
        """After a step: keep the results that began to wait in it, and remove the segments no longer needed."""
        self._keep_waiting(engine)
        # Only one stream is merged per step, so that no step takes as long as merging all of them.
        turn = self._manifest.step % len(self._sources)
        for source_number, stream in enumerate(self._sources):
            horizon = self._watermarks.horizon(stream)
            self._manifest.needed_since[stream] = self._oldest_needed(stream, horizon, engine)
            self._log.forget(stream, horizon)
            if source_number == turn:
                self._log.merge(stream)
                self._compact(stream, horizon)

    def _window_segments(self) -> Iterator[Segment]:
        for stream in self._sources:
            yield from self._log.segments(stream)

    def _end(self, segment: Segment) -> int:
        """When the last row of a segment ends, as far as that is known."""
        window = self._sources[segment.stream].window
        if window.end_column is not None:
            return int(ends_in(segment.rows.column(window.end_column)).max(initial=-FOREVER))
        _, ends = lifetimes(np.array([segment.newest]), window)
        return int(ends[0])

    def _oldest_needed(self, stream: str, horizon: int, engine: Engine) -> int:
        """The event time before which no row of a stream is needed, if no row before `horizon` will probe it."""
        source = self._sources[stream]
        if source.window.counts_rows:
            return engine.oldest_needed(source.alias)
        lifetime = source.window.lifetime
        if lifetime is not None and lifetime < FOREVER and abs(horizon) < FOREVER:
            return horizon - lifetime - (source.window.slide or 0)
        return self._manifest.needed_since.get(stream, -FOREVER)

    def _compact(self, stream: str, horizon: int) -> None:
        """Remove rows from partitions that have newer ones, if they may be the larger part.

        Where rows are counted by partition, a rare key keeps its rows alive for long, and all segments after them.
        """
        window = self._sources[stream].window
        rows_kept = sum(entry.rows for entry in self._manifest.entries.get(stream, []))
        if not window.partition_by or window.row_limit is None:
            return
        if not is_worth_compacting(rows_kept, self._manifest.alive.get(stream, 0)):
            return
        rows = pa.concat_batches([segment.rows for segment in self._log.segments(stream)])
        times = event_times(rows.column(self._sources[stream].declared.time))
        partitions = RowCounter(window.row_limit, window.partition_by).partition_codes(rows)
        alive = alive_rows(times, partitions, window.row_limit, horizon)
        self._manifest.alive[stream] = int(alive.sum())
        self._log.replace(stream, rows.filter(pa.array(alive)))

    def _keep_waiting(self, engine: Engine) -> None:
        waiting = engine.newly_waiting()
        if waiting is None:  # The query excludes nothing.
            return
        if waiting.num_rows:
            newest = int(event_times(waiting.column(TIME)).max())
            self._log.add(Segment(WAITING, waiting, newest=newest), -FOREVER, newest + 1)
        # A result stops waiting once all excluded streams have passed its event time.
        excluded = (exclusion.source.declared.name for exclusion in self._query.exclusions)
        decided = min(map(self._watermarks.of, excluded))
        self._manifest.needed_since[WAITING] = decided
        self._log.forget(WAITING, decided)
        self._log.merge(WAITING)
