"""The watermarks of a shard's streams. Rows older than the watermark of their stream are late and not taken.

A shard computes the watermark of a stream as its newest event time minus its declared lateness. For some streams the
host *announces* watermarks instead. Watermarks never go back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from braid.engine.segment import Segment, no_rows
from braid.model.query import Query
from braid.model.window import FOREVER


def branch_key(stream: str, branch: int) -> str:
    """The name of a branch among the newest event times of a manifest, and in reports."""
    return f"{stream}/{branch}"


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
            self._note(segment.stream, segment.newest)
            if segment.stream in self._declared and self._declared[segment.stream].branches:
                self._note(branch_key(segment.stream, segment.branch), segment.newest)
        for stream, declared in self._declared.items():
            if stream in self._announced:
                continue
            if declared.branches:
                # A stream that unites others is as far as the slowest of them.
                self.announce({stream: min(self.of_branch(stream, branch) for branch in range(len(declared.branches)))})
            elif self._newest.get(stream, -FOREVER) > -FOREVER:
                self.reach(stream, self._newest[stream])

    def of_branch(self, stream: str, branch: int) -> int:
        """The watermark of one of the streams that a stream unites."""
        newest = self._newest.get(branch_key(stream, branch), -FOREVER)
        return newest - self._declared[stream].branches[branch].lateness if newest > -FOREVER else -FOREVER

    def reach_branch(self, stream: str, branch: int, moment: int) -> None:
        """Raise the watermark of one of the streams that a stream unites as a row with this event time would."""
        self._note(branch_key(stream, branch), moment)

    def _note(self, key: str, moment: int) -> None:
        self._newest[key] = max(self._newest.get(key, -FOREVER), moment)

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
