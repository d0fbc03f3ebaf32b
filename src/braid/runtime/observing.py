"""Counts what an engine does in a batch, for reports and for the controller."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from braid.adapt.observation import Observation, PairSeen, StreamSeen
from braid.adapt.sketch import KeySketch
from braid.engine.counts import Counts
from braid.engine.engine import Engine
from braid.engine.input.lifetime import event_times
from braid.engine.segment import Segment
from braid.model.program import Join, Union
from braid.model.query import Source
from braid.model.window import FOREVER
from braid.runtime.report import JoinReport

MOST_TIMED = 1_024
"""The most rows sampled per segment to measure how far rows come behind newer ones."""

JoinKey = tuple[tuple[str, ...], str]
"""The streams joined so far, in order, and the stream they probe."""


class Watch:
    """Watches an engine: make one before a batch, and ask it after the batch what changed."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._before = engine.counts()

    def observe(self, segments: Sequence[Segment], *, samples: bool = True) -> Observation:
        """What the engine did in the batch; `segments` are those that it took.

        Matches of pairs and keys are sampled, which costs time; without `samples` only rows and work are counted.
        """
        after = self._engine.counts()
        query = self._engine.program.query
        streams = {source.alias: self._stream(source, segments, after) for source in query.inputs}
        work = _work(after) - _work(self._before)
        if not samples:
            return Observation(streams, work=work)
        new = {alias: streams[alias].entered for alias in query.aliases}
        # Every shard samples the same number of rows, so a shard with more new rows must get more weight.
        pairs = {
            (pair.head, pair.stream): PairSeen(float(pair.rows), pair.matches * pair.rows / pair.probes)
            for pair in self._engine.sample(new)
        }
        keys: dict[tuple[str, int], KeySketch] = {}
        for alias, class_number, words in self._engine.key_words(new):
            keys.setdefault((alias, class_number), KeySketch()).feed(words)
        return Observation(streams, pairs, keys, work)

    def joins(self) -> tuple[JoinReport, ...]:
        """How often each window was probed in the batch, and with how many matches."""
        before = _join_counts(self._engine, self._before)
        after = _join_counts(self._engine, self._engine.counts())
        reports = []
        for (bound, stream), (probes, matches) in after.items():
            probes_before, matches_before = before[bound, stream]
            reports.append(JoinReport(bound, stream, probes - probes_before, matches - matches_before))
        return tuple(reports)

    def emitted(self) -> int:
        """How many results there were in the batch."""
        return self._engine.counts().emitted - self._before.emitted

    def _stream(self, source: Source, segments: Sequence[Segment], after: Counts) -> StreamSeen:
        before, now = self._before.streams[source.alias], after.streams[source.alias]
        own_segments = [segment for segment in segments if segment.stream == source.declared.name]
        newest: int | None = None
        behind: int | None = None
        for segment in own_segments:
            sampled = _sample_times(segment.rows.column(source.declared.time), newest)
            if sampled is not None:
                newest, behind = sampled[0], max(sampled[1], behind or 0)
        # Rows of the stream that went to other shards count too; on the local host segments do not have it.
        newest_anywhere = max((segment.newest for segment in own_segments), default=-FOREVER)
        return StreamSeen(
            received=now.received - before.received,
            entered=now.entered - before.entered,
            late=now.late - before.late,
            held=now.held,
            size=sum(segment.rows.nbytes for segment in own_segments if segment.rows.num_rows),
            newest=newest_anywhere if newest_anywhere > -FOREVER else newest,
            behind=behind,
            untimed=now.untimed - before.untimed,
        )


def _sample_times(column: pa.Array, newest: int | None) -> tuple[int, int] | None:
    """The newest event time so far, and the farthest that a sampled row is behind the newest row before it.

    `newest` is the newest event time before this column. None if no row has an event time.
    """
    times = event_times(column.drop_null() if column.null_count else column)
    if not len(times):
        return None
    before = -FOREVER if newest is None else newest
    stride = -(-len(times) // MOST_TIMED)
    sampled = times[::stride]
    newest_before = np.maximum.accumulate(np.concatenate([[before], sampled]))[1:]
    return max(int(times.max()), before), int((newest_before - sampled).max(initial=0))


def _work(counts: Counts) -> int:
    return sum(join.probes + join.matches for join in counts.joins)


def _join_counts(engine: Engine, counts: Counts) -> dict[JoinKey, tuple[int, int]]:
    """Probes of the windows of streams, and their matches, by the streams joined so far.

    Derived streams are replaced by the streams they join: their names mean nothing outside the engine.
    """
    members: dict[str, tuple[str, ...]] = {alias: (alias,) for alias in counts.streams}
    for step in engine.program.instructions:
        if isinstance(step, Join):
            members[step.result] = (*members[step.probe], *members[step.stream])
        elif isinstance(step, Union):
            members[step.result] = members[step.streams[0]]
    return {
        (members[join.probe], join.stream): (join.probes, join.matches)
        for join in counts.joins
        if join.stream in counts.streams
    }
