"""Which segments a shard keeps in its store: each until no later row can join with any of its rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from braid.engine.engine import Engine
from braid.engine.input.lifetime import ends_in, event_times, lifetimes
from braid.engine.input.row_counter import RowCounter
from braid.engine.segment import Segment
from braid.model.query import Query
from braid.model.window import FOREVER
from braid.runtime.compaction import alive_rows, is_worth_compacting
from braid.runtime.manifest import Manifest
from braid.runtime.segment_log import LoggedStream, SegmentLog
from braid.runtime.store import Store
from braid.runtime.watermarks import Watermarks

FIRST_LOG_NUMBER = -2
"""The source number of the first log of rows that wait; the others count down. The number of the manifest is -1."""


def logged_streams(query: Query) -> dict[str, LoggedStream]:
    """What the log of a shard must know of each stream of the query."""
    return {
        source.declared.name: LoggedStream(source_number, source.declared.time, tuple(source.declared.schema.names))
        for source_number, source in enumerate(query.inputs)
    }


def waiting_logs(engine: Engine) -> dict[str, LoggedStream]:
    """What it must know of the logs of rows that wait, which the engine names."""
    return {
        log: LoggedStream(FIRST_LOG_NUMBER - position, until)
        for position, (log, until) in enumerate(engine.logs.items())
    }


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
        self._logged = logged_streams(query)
        self._log = SegmentLog(store, manifest, self._logged)
        # Every row of these streams waits for a partner, so their windows are restored from the log of waiting rows.
        self._logged_as_waiting = {join.source.declared.name for join in query.fixed_joins if join.kind.preserves_right}

    def keep(self, segment: Segment) -> None:
        """Keep a segment that has just come, unless no row will probe its window, or its rows are logged as waiting."""
        is_probed = self._watermarks.horizon(segment.stream) < FOREVER
        is_needed = is_probed and segment.stream not in self._logged_as_waiting
        if segment.rows.num_rows and is_needed:
            self._log.add(segment, self._watermarks.of(segment.stream), self._end(segment))

    def move_in(self, segments: Iterable[Segment], engine: Engine) -> None:
        """Keep segments from the stores of other shards: none of their rows is late."""
        self._know_logs(engine)
        for segment in segments:
            if segment.rows.num_rows:
                self._log.add(segment, -FOREVER, FOREVER if segment.stream in engine.logs else self._end(segment))
        for pending in (side for stage in engine.stages for side in (stage.left, stage.right) if side is not None):
            rows_log, matches_log = pending.logs
            rows = pending.folded({log: [segment.rows for segment in self._log.segments(log)] for log in pending.logs})
            self._log.replace(rows_log, rows)
            self._log.replace(matches_log, rows.slice(0, 0))

    def restore(self, engine: Engine) -> None:
        """Fill the windows of a new engine with the stored rows, and give it back the rows that wait."""
        engine.restore(self._window_segments())
        engine.restore(self._watermarks.progress())
        self._know_logs(engine)
        engine.wait({log: [segment.rows for segment in self._log.segments(log)] for log in engine.logs})

    def update(self, engine: Engine) -> None:
        """After a step: store the rows that began to wait in it, and remove the segments that are no longer needed."""
        self._keep_waiting(engine)
        # Only one stream is merged per step, so that no step takes as long as merging all of them.
        turn = self._manifest.step % len(self._sources)
        for source_number, stream in enumerate(self._sources):
            horizon = self._horizon(stream, engine)
            self._manifest.needed_since[stream] = self._oldest_needed(stream, horizon, engine)
            self._log.forget(stream, horizon)
            if source_number == turn:
                self._log.merge(stream)
                self._compact(stream, horizon)

    def _horizon(self, stream: str, engine: Engine) -> int:
        """No row that starts before this event time will probe the window of a stream."""
        alias = self._sources[stream].alias
        if any(join.source.alias == alias for join in self._query.fixed_joins):
            # It is probed by rows of earlier joins, which may be older than any row still to come.
            return engine.needed_from(alias)
        return self._watermarks.horizon(stream)

    def _window_segments(self) -> Iterator[Segment]:
        for stream in self._sources:
            yield from self._log.segments(stream)

    def _end(self, segment: Segment) -> int:
        """When the last row of a segment ends; FOREVER if that is not known."""
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
        self._know_logs(engine)
        for waiting in engine.newly_waiting():
            if waiting.rows.num_rows:
                newest = int(event_times(waiting.rows.column(waiting.until)).max())
                self._log.add(Segment(waiting.name, waiting.rows, newest=newest), -FOREVER, FOREVER)
            self._manifest.needed_since[waiting.name] = waiting.needed_since
            self._log.forget(waiting.name, -FOREVER)
            self._log.merge(waiting.name)

    def _know_logs(self, engine: Engine) -> None:
        self._logged |= waiting_logs(engine)
