"""What a plan may ship, measured by making it: how many rows a stream or a join has, and their bytes on a channel."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import combinations

from braid.channels.batch import Batch
from braid.engine.segment import Segment
from braid.hosts.simulated.feeding import SourceBatches
from braid.model.output import EVENT_TIME_COLUMN
from braid.model.query import Query
from braid.model.statistics import Sized
from braid.model.window import FOREVER
from braid.runtime.routing import router_for
from braid.runtime.sites.fragment import Fragment
from braid.runtime.sites.node import Node, NodePacker, NodeShard, progress_of
from braid.runtime.sites.site import merged, outgoing_segments
from braid.runtime.sites.wire import WireStream
from braid.runtime.sites.work import Outlet

MOST_JOINS = 16
"""The most joins of a query that are measured, small ones first; that of all its streams is always."""


@dataclass
class Travelled:
    """Rows, and their bytes."""

    rows: int = 0
    bytes: int = 0


class Measurements:
    """Measures streams and joins of a query. `batches` gives the batches of its streams, as often as it is called."""

    def __init__(self, query: Query, batches: Callable[[], Iterable[SourceBatches]]) -> None:
        self._query = query
        self._batches = batches
        self.streams = {alias: self._stream(alias) for alias in query.aliases}
        """The rows that meet the conditions on a stream alone, with the columns that the rest of the query needs."""
        self.joins = {streams: self._join(streams) for streams in joins_that_travel(query)}
        """What a tree may ship."""
        self.prefixes = {(head, streams): self._join(streams, head) for streams in self.joins for head in streams}
        """What a head may ship on its way through a probe sequence."""

    @property
    def sizes(self) -> dict[Sized, float]:
        """Bytes per row. A stream without rows has none, and a join without rows an unknown number."""
        sizes: dict[Sized, float] = dict.fromkeys(self._query.aliases, 0.0)
        for travelled in (self.streams, self.joins, self.prefixes):
            sizes |= {subject: made.bytes / made.rows for subject, made in travelled.items() if made.rows}
        return sizes

    def _stream(self, alias: str) -> Travelled:
        return self._made((alias,), WireStream(self._query, alias, (alias,)))

    def _join(self, streams: frozenset[str], head: str | None = None) -> Travelled:
        parts = tuple(alias for alias in self._query.aliases if alias in streams)
        started = parts if head is None else (head,)
        return self._made(parts, WireStream(self._query, " and ".join(parts), parts, started), head)

    def _made(self, parts: tuple[str, ...], output: WireStream, head: str | None = None) -> Travelled:
        """What a site that has all these streams ships."""
        inputs = tuple(WireStream(self._query, alias, (alias,), at_origin=True) for alias in parts)
        fragment = Fragment(self._query, inputs, output, head)
        node = Node(output.name, fragment, router_for(fragment.local_query, 1), EVENT_TIME_COLUMN)
        shard, packers = NodeShard(node), {alias: NodePacker(node, alias) for alias in parts}
        outlet = Outlet(output.name, output.name)
        travelled, reached = Travelled(), -FOREVER
        names = {alias: self._query.source(alias).declared.name for alias in parts}
        for batch in self._batches():
            if batch.keys().isdisjoint(names.values()):
                continue
            segments: list[Segment] = []
            for alias, packer in packers.items():
                if names[alias] in batch:
                    rows, _ = batch[names[alias]]
                    segments += [segment for _, segment in packer.pack(rows)]
            made, report = shard.step(segments, {})
            shipped, watermark = merged(outgoing_segments(node, outlet, made)), progress_of(report)
            # A batch without rows is published if it tells a later watermark.
            if shipped or watermark > reached:
                reached = watermark
                published = Batch.behind(None, outlet.channel, 0, shipped, watermark)
                travelled.rows += published.rows
                travelled.bytes += len(published.data)
        return travelled


def joins_that_travel(query: Query) -> list[frozenset[str]]:
    """The joins of connected streams that a plan may ship. Rows of windows that count rows cannot travel."""
    travelling = [alias for alias in query.aliases if query.source(alias).window.lifetime is not None]
    tied = [group.sources for group in query.graph.classes] + [condition.sources for condition in query.graph.residuals]
    joins: list[frozenset[str]] = []
    for count in range(2, len(travelling)):
        for streams in map(frozenset, combinations(travelling, count)):
            if len(joins) == MOST_JOINS:
                break
            if _is_connected(streams, tied):
                joins.append(streams)
    if len(travelling) == len(query.aliases) > 1:
        joins.append(frozenset(query.aliases))
    return joins


def _is_connected(streams: frozenset[str], tied: Iterable[frozenset[str]]) -> bool:
    groups = [streams & group for group in tied]
    reached = frozenset([min(streams)])
    while True:
        further = reached.union(*(group for group in groups if group & reached))
        if further == reached:
            return reached == streams
        reached = further
