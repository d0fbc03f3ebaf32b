"""What an engine does in a batch, counted for whoever decides on its plan."""

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
"""Of a segment, so many rows at most are asked how late they are."""

JoinKey = tuple[tuple[str, ...], str]
"""The streams joined so far, in order, and the stream they probe."""


class Watch:
    """Made before a batch, asked after it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._before = engine.counts()

    def observe(self, segments: Sequence[Segment]) -> Observation:
        """What the engine has done since; the segments are those that it took."""
        after = self._engine.counts()
        query = self._engine.program.query
        streams = {source.alias: self._stream(source, segments, after) for source in query.inputs}
        new = {alias: streams[alias].entered for alias in query.aliases}
        # Every shard samples as many rows; one with many new rows must count for more than one with few.
        pairs = {
            (pair.head, pair.stream): PairSeen(float(pair.rows), pair.matches * pair.rows / pair.probes)
            for pair in self._engine.sample(new)
        }
        keys: dict[tuple[str, int], KeySketch] = {}
        for alias, number, words in self._engine.key_words(new):
            keys.setdefault((alias, number), KeySketch()).feed(words)
        return Observation(streams, pairs, keys, _work(after) - _work(self._before))

    def joins(self) -> tuple[JoinReport, ...]:
        """How often each window has been probed since, and with how many matches."""
        before = _counts_of_joins(self._engine, self._before)
        after = _counts_of_joins(self._engine, self._engine.counts())
        return tuple(
            JoinReport(bound, stream, probes - before[bound, stream][0], matches - before[bound, stream][1])
            for (bound, stream), (probes, matches) in after.items()
        )

    def emitted(self) -> int:
        """How many results there were since."""
        return self._engine.counts().emitted - self._before.emitted

    def _stream(self, source: Source, segments: Sequence[Segment], after: Counts) -> StreamSeen:
        before, now = self._before.streams[source.alias], after.streams[source.alias]
        own = [segment for segment in segments if segment.stream == source.declared.name]
        newest: int | None = None
        behind: int | None = None
        for segment in own:
            sampled = _sample_times(segment.rows.column(source.declared.time), newest)
            if sampled is not None:
                newest, behind = sampled[0], max(sampled[1], behind or 0)
        announced = max((segment.newest for segment in own), default=-FOREVER)
        return StreamSeen(
            received=now.received - before.received,
            entered=now.entered - before.entered,
            late=now.late - before.late,
            held=now.held,
            size=sum(segment.rows.nbytes for segment in own if segment.rows.num_rows),
            newest=announced if announced > -FOREVER else newest,
            behind=behind,
            untimed=now.untimed - before.untimed,
        )


def _sample_times(column: pa.Array, newest: int | None) -> tuple[int, int] | None:
    """The newest event time so far, and the longest that a row came after a newer one, by a sample of the rows."""
    times = event_times(column.drop_null() if column.null_count else column)
    if not len(times):
        return None
    latest, sampled = times.max(), times[:: -(-len(times) // MOST_TIMED)]
    before = np.array([-FOREVER if newest is None else newest])
    reached = np.maximum.accumulate(np.concatenate([before, sampled]))[1:]
    return max(int(latest), int(before[0])), int((reached - sampled).max(initial=0))


def _work(counts: Counts) -> int:
    return sum(join.probes + join.matches for join in counts.joins)


def _counts_of_joins(engine: Engine, counts: Counts) -> dict[JoinKey, tuple[int, int]]:
    """Probes and matches in the windows of streams, by the streams that are joined.

    The names of derived streams mean nothing outside the engine.
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
