"""How far each stream of a shard has come: its watermark, before which no row will be taken any more.

Most streams have a watermark of our own: the newest event time they brought, less the lateness they were declared with.
A host may *announce* the watermarks of some streams instead. Watermarks never go back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from braid.engine.segment import Segment, no_rows
from braid.model.query import Query
from braid.model.window import FOREVER


class Watermarks:
    """The watermarks of a query's streams, by the name that their segments have.

    `newest` and `reached` are updated in place: they are part of the shard's manifest.
    """

    def __init__(
        self, query: Query, newest: dict[str, int], reached: dict[str, int], announced: frozenset[str] = frozenset()
    ) -> None:
        self._query = query
        self._declared = {source.declared.name: source.declared for source in query.inputs}
        self._newest = newest
        self._reached = reached
        self._announced = announced

    def of(self, stream: str) -> int:
        return self._reached.get(stream, -FOREVER)

    def announce(self, moments: Mapping[str, int]) -> None:
        """Take streams to have reached these event times."""
        for stream, moment in moments.items():
            self._reached[stream] = max(self.of(stream), moment)

    def pass_idle(self, reached: Mapping[str, int]) -> None:
        """Take idle streams for as far as if a row with these event times had come."""
        passed = {stream: newest - self._declared[stream].lateness for stream, newest in reached.items()}
        self.announce(passed)

    def advance(self, segments: Iterable[Segment]) -> None:
        """Move on after a batch."""
        for segment in segments:
            self._newest[segment.stream] = max(self._newest.get(segment.stream, -FOREVER), segment.newest)
        known = {stream: newest for stream, newest in self._newest.items() if newest > -FOREVER}
        self.pass_idle({stream: newest for stream, newest in known.items() if stream not in self._announced})

    def progress(self) -> list[Segment]:
        """Segments without rows that tell an engine how far each stream has come."""
        return [
            Segment(stream, no_rows(declared.schema), self.of(stream)) for stream, declared in self._declared.items()
        ]

    def horizon(self, stream: str) -> int:
        """The event time before which no row starts that has yet to probe the window of a stream.

        Rows of the streams that it is joined with probe it. Where windows count rows, all rows wait for each other, its
        own too; and so do results for an excluded stream.
        """
        joined = {source.declared.name for source in self._query.sources}
        if stream not in joined:
            probing = set(self._declared)
        elif self._query.counts_rows:
            probing = joined
        else:
            probing = joined - {stream}
        return min(map(self.of, probing), default=FOREVER)
