"""The watermarks of a shard's streams. Rows older than the watermark of their stream are late and not taken.

A shard computes the watermark of a stream as its newest event time minus its declared lateness. For some streams the
host *announces* watermarks instead. Watermarks never go back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from braid.engine.segment import Segment, no_rows
from braid.model.query import Query
from braid.model.window import FOREVER


class Watermarks:
    """The watermarks of a query's streams, by the name that their segments have.

    `newest` (event times of the newest rows) and `watermarks` are parts of the shard's manifest, changed in place.
    The streams in `announced` get their watermarks only from the host.
    """

    def __init__(
        self, query: Query, newest: dict[str, int], watermarks: dict[str, int], announced: frozenset[str] = frozenset()
    ) -> None:
        self._query = query
        self._declared = {source.declared.name: source.declared for source in query.inputs}
        self._newest = newest
        self._watermarks = watermarks
        # The manifest lists every stream, also one without a row: `braid state` shows what is listed.
        for stream in self._declared:
            watermarks.setdefault(stream, -FOREVER)
        self._announced = announced

    def of(self, stream: str) -> int:
        return self._watermarks.get(stream, -FOREVER)

    def announce(self, watermarks: Mapping[str, int]) -> None:
        """Raise the watermarks of streams to these event times, where they are lower."""
        for stream, watermark in watermarks.items():
            self._watermarks[stream] = max(self.of(stream), watermark)

    def advance(self, segments: Iterable[Segment]) -> None:
        """Raise the watermarks of streams that are not announced, after a batch with these segments."""
        for segment in segments:
            self._newest[segment.stream] = max(self._newest.get(segment.stream, -FOREVER), segment.newest)
        for stream, newest in self._newest.items():
            if newest > -FOREVER and stream not in self._announced:
                self.reach(stream, newest)

    def reach(self, stream: str, moment: int) -> None:
        """Raise the watermark of a stream as a row with this event time would."""
        self.announce({stream: moment - self._declared[stream].lateness})

    def progress(self) -> list[Segment]:
        """Segments without rows that tell an engine the watermark of each stream."""
        return [
            Segment(stream, no_rows(declared.schema), self.of(stream)) for stream, declared in self._declared.items()
        ]

    def horizon(self, stream: str) -> int:
        """The event time before which no row starts that may still probe the window of a stream.

        The window is probed by rows of the streams it is joined with. If windows count rows, rows of the stream itself
        count too, because all rows wait for each other. The window of a stream that is joined later is probed by
        results of the inner joins, which wait for all streams.
        """
        joined = {source.declared.name for source in self._query.sources}
        if stream not in joined:
            probing = set(self._declared)
        elif self._query.counts_rows:
            probing = joined
        else:
            probing = joined - {stream}
        return min(map(self.of, probing), default=FOREVER)
