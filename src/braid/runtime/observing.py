"""Counts what an engine does in a batch, for reports and for the controller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa

from braid.adapt.observation import FanoutSeen, KeyColumn, Observation, StreamSeen, TrialSeen
from braid.adapt.sketch import KeySketch
from braid.engine.counts import Counts, TrialCounts
from braid.engine.engine import Engine
from braid.engine.input.lifetime import event_times
from braid.engine.segment import Segment
from braid.model.query import Source
from braid.model.statistics import Prefix
from braid.model.window import FOREVER
from braid.runtime.fanouts import JoinKey, fanouts_of
from braid.runtime.report import JoinReport

MOST_TIMED = 1_024
"""The most rows sampled per segment to measure how far rows come behind newer ones."""


WORK_OF_A_BATCH, WORK_OF_A_STORED_BATCH, WORK_OF_A_ROW = 100_000, 3_000_000, 10
"""What a batch costs without any row, in memory and with a store, and a row that probes nothing, in probes."""


class Watch:
    """Watches an engine: make one before a batch, and ask it after the batch what changed."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._before = engine.counts()

    @cached_property
    def _after(self) -> Counts:
        return self._engine.counts()

    def work(self, *, is_stored: bool) -> int:
        """The work that the batch was, in probes and candidates: also that of taking rows in, and of any batch."""
        after = self._after
        rows = sum(stream.received - self._before.streams[name].received for name, stream in after.streams.items())
        least = WORK_OF_A_STORED_BATCH if is_stored else WORK_OF_A_BATCH
        return least + rows * WORK_OF_A_ROW + _work(after) - _work(self._before)

    def observe(self, segments: Sequence[Segment], *, samples: bool = True) -> Observation:
        """What the engine did in the batch; `segments` are those that it took.

        Fan-outs along the running plan are counted. Those of other orders are sampled, and join keys sketched, unless
        that is not wanted: it costs time.
        """
        after = self._after
        query = self._engine.program.query
        streams = {source.alias: self._stream(source, segments, after) for source in query.inputs}
        work = _work(after) - _work(self._before)
        trials = {head: _trial(trial - self._trial_before(head)) for head, trial in after.trials.items()}
        new = {alias: streams[alias].entered for alias in query.aliases}
        fanouts = (self._sampled_fanouts(new) if samples else {}) | self._counted_fanouts(after, new)
        sketches, completion = self._sketches(new) if samples else {}, after.completion - self._before.completion
        return Observation(streams, fanouts, sketches, work, trials, completion, is_sampled=samples)

    def _sketches(self, new: Mapping[str, int]) -> dict[KeyColumn, KeySketch]:
        sketches: dict[KeyColumn, KeySketch] = {}
        classes = self._engine.program.query.graph.classes
        for alias, class_number, words in self._engine.key_words(new):
            sketches.setdefault((alias, class_number), KeySketch()).feed(words, classes[class_number].type)
        return sketches

    def _trial_before(self, head: str) -> TrialCounts:
        return self._before.trials.get(head, TrialCounts())

    def _sampled_fanouts(self, new: Mapping[str, int]) -> dict[Prefix, FanoutSeen]:
        """The fan-outs that a sample shows, scaled up to all new rows: a shard with more of them has more weight."""
        return {
            (fanout.head, fanout.bound): FanoutSeen(
                float(fanout.rows),
                fanout.mean * fanout.rows,
                fanout.variance * fanout.rows**2,
                float(fanout.seen * fanout.rows),
                float(fanout.probes),
                fanout.per_match * fanout.rows,
            )
            for fanout in self._engine.sample(new)
        }

    def _counted_fanouts(self, after: Counts, new: Mapping[str, int]) -> dict[Prefix, FanoutSeen]:
        """The fan-outs along the sequences of the running plan, which are counted on all rows.

        With parts, different rows go along different sequences: no count is that of all rows.
        """
        if after.join_states or self._engine.program.parts:
            return {}
        joins = {(join.bound, join.probed): (join.probes, join.matches) for join in self.joins()}
        fanouts, order = {}, list(new)
        for (head, bound), fanout in fanouts_of(joins, new).items():
            rows, others = float(new[head]), [alias for alias in bound if alias != head]
            pairs = 0.0
            if len(others) == 1:
                # A row sees new rows only of the streams before its own.
                unseen = new[others[0]] if order.index(others[0]) > order.index(head) else 0
                pairs = rows * (after.streams[others[0]].held - unseen)
            fanouts[head, bound] = FanoutSeen(rows, fanout * rows, fanout * rows, max(0.0, pairs), rows, rows)
        return fanouts

    def joins(self) -> tuple[JoinReport, ...]:
        """How often each window and join state was probed in the batch, and with how many matches."""
        before, after = _join_counts(self._before), _join_counts(self._after)
        reports = []
        for (bound, probed), (probes, matches) in after.items():
            probes_before, matches_before = before[bound, probed]
            reports.append(JoinReport(bound, probed, probes - probes_before, matches - matches_before))
        return tuple(reports)

    def emitted(self) -> int:
        """How many results there were in the batch."""
        return self._after.emitted - self._before.emitted

    def waiting(self) -> int:
        """How many results and rows wait for a watermark."""
        return self._after.waiting

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
    return sum(join.work for join in counts.joins)


def _trial(counts: TrialCounts) -> TrialSeen:
    return TrialSeen(counts.rows, counts.old_work, counts.new_work, counts.left)


def _join_counts(counts: Counts) -> dict[JoinKey, tuple[int, int]]:
    """Probes and matches, by the streams joined so far and those probed.

    Derived streams are given by the streams they join: their names mean nothing outside the engine.
    """
    sums: dict[JoinKey, tuple[int, int]] = {}
    for join in counts.joins:
        probes, matches = sums.get((join.bound, join.probed), (0, 0))
        sums[join.bound, join.probed] = probes + join.probes, matches + join.matches
    return sums
