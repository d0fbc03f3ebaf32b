"""What a site does in a batch, as the adaptive part wants to know it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from braid.adapt.observation import Observation, PairSeen, StreamSeen
from braid.adapt.sketch import KeySketch
from braid.engine.lifetime import event_times
from braid.engine.segment import Segment
from braid.engine.site import Counts, Site
from braid.model.query import Source
from braid.model.window import FOREVER

MOST_TIMED = 1_024
"""How late rows are is looked at in so many of a segment."""


class Watch:
    """Made before a batch, asked after it."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._before = site.counts()

    def observe(self, segments: Sequence[Segment]) -> Observation:
        """What the site has done since; the segments are those that it took in."""
        after = self._site.counts()
        streams = {source.alias: self._stream(source, segments, after) for source in self._site.program.query.sources}
        new = {alias: seen.entered for alias, seen in streams.items()}
        # Buckets with many new rows count for more than those with few, though of each as many are sampled.
        pairs = {
            (pair.head, pair.stream): PairSeen(float(pair.rows), pair.matches * pair.rows / pair.probes)
            for pair in self._site.sample(new)
        }
        keys: dict[tuple[str, int], KeySketch] = {}
        for alias, number, words in self._site.key_words(new):
            keys.setdefault((alias, number), KeySketch()).feed(words)
        return Observation(streams, pairs, keys, _work(after) - _work(self._before))

    def _stream(self, source: Source, segments: Iterable[Segment], after: Counts) -> StreamSeen:
        before, now = self._before.streams[source.alias], after.streams[source.alias]
        own = [segment for segment in segments if segment.stream == source.declared.name and segment.rows.num_rows]
        newest, behind = None, None
        for segment in own:
            told = _times(segment.rows.column(source.declared.time), newest)
            if told is not None:
                newest, behind = told[0], max(told[1], behind or 0)
        told_newest = max((segment.newest for segment in own), default=-FOREVER)
        return StreamSeen(
            received=now.received - before.received,
            entered=now.entered - before.entered,
            late=now.late - before.late,
            held=now.kept,
            size=sum(segment.rows.nbytes for segment in own),
            newest=told_newest if told_newest > -FOREVER else newest,
            behind=behind,
        )


def _times(column: pa.Array, newest: int | None) -> tuple[int, int] | None:
    """The newest event time, and the longest that a row came after a newer one, by a sample of the rows."""
    times = event_times(column.drop_null() if column.null_count else column)
    if not len(times):
        return None
    latest, sampled = times.max(), times[:: -(-len(times) // MOST_TIMED)]
    before = np.array([-FOREVER if newest is None else newest])
    reached = np.maximum.accumulate(np.concatenate([before, sampled]))[1:]
    return max(int(latest), int(before[0])), int((reached - sampled).max(initial=0))


def _work(counts: Counts) -> int:
    return sum(join.probes + join.matches for join in counts.joins)
