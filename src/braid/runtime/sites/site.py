"""One site of a deployment at work: rows of its own streams and batches of channels in, batches for channels out."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from braid.engine.input.lifetime import event_times
from braid.engine.segment import Segment
from braid.model.output import EVENT_TIME_COLUMN
from braid.model.window import FOREVER
from braid.runtime.report import ShardReport
from braid.runtime.routing import router_for
from braid.runtime.sites.fragment import Fragment
from braid.runtime.sites.guarding import guarded
from braid.runtime.sites.node import Node, NodePacker, NodeShard, progress_of
from braid.runtime.sites.work import Outlet, SiteWork
from braid.runtime.store import PrefixedStore, Store

MOST_MERGED = 10_000
"""Segments are merged up to this many rows: merging costs time, and larger segments hardly save bytes."""

MANIFEST = (-1, 0)
"""The key of what a site stores about itself. The keys of its nodes have prefixes."""


@dataclass
class StreamBatch:
    """Rows of a stream, and its watermark after them."""

    rows: list[pa.RecordBatch] = field(default_factory=list)
    watermark: int = -FOREVER


def nodes_of(work: SiteWork, shards: int, event_time: str) -> dict[str, Node]:
    """The fragments of a site, each split into at most this many shards."""
    return {
        name: Node(name, fragment, router_for(fragment.local_query, shards), event_time)
        for name, fragment in work.fragments.items()
    }


@dataclass(frozen=True)
class Outgoing:
    """What a step of a site publishes on one channel."""

    outlet: Outlet
    segments: tuple[Segment, ...]
    watermark: int


def outgoing_segments(node: Node, outlet: Outlet, rows: Iterable[pa.RecordBatch]) -> tuple[Segment, ...]:
    """The rows of a node that one of its outlets publishes, as segments with the newest of their starts."""
    segments = []
    stream = node.fragment.output
    for part in rows:
        if stream is None:
            passing = results_from(outlet.guard.since, part, node.event_time)
        else:
            passing = guarded(part, stream, outlet.guard)
        if passing.num_rows:
            starts = event_times(passing.column(node.event_time)) if stream is None else stream.lifetimes(passing)[0]
            outgoing = passing if outlet.fields is None else passing.select(list(outlet.fields))
            segments.append(Segment(outlet.fragment, outgoing, newest=int(starts.max())))
    return tuple(segments)


def results_from(first: int, results: pa.RecordBatch, event_time: str) -> pa.RecordBatch:
    """The results whose event time is at or after `first`."""
    if first == -FOREVER:
        return results
    belongs = event_times(results.column(event_time)) >= first
    return results if belongs.all() else results.filter(pa.array(belongs))


def merged(segments: Sequence[Segment]) -> tuple[Segment, ...]:
    """Small segments as one: each carries its Arrow schema, which may be more bytes than its rows."""
    if len(segments) < 2 or sum(segment.rows.num_rows for segment in segments) > MOST_MERGED:
        return tuple(segments)
    rows = pa.concat_batches([segment.rows for segment in segments])
    return (Segment(segments[0].stream, rows, newest=max(segment.newest for segment in segments)),)


def watermarks_of(work: SiteWork, fragment: Fragment, channels: Mapping[str, int | None]) -> dict[str, int]:
    """The watermarks of the streams that reach a fragment by channels, given those of the channels.

    A stream that arrives on several channels has the lowest of their watermarks, and none as long as one of the
    channels has none.
    """
    watermarks: dict[str, int] = {}
    for channel, streams in work.arriving.items():
        for stream in set(streams).intersection(fragment.reads):
            reached = channels.get(channel)
            watermarks[stream] = min(watermarks.get(stream, FOREVER), -FOREVER if reached is None else reached)
    return watermarks


class SiteRuntime:
    """Runs the work of one site, step by step, from where its store says that it was.

    `positions` is for the host: how far it has read each of its inputs. It is kept with everything else.
    """

    def __init__(self, work: SiteWork, store: Store, shards: int = 1) -> None:
        self.work = work
        self._store = store
        self._nodes = nodes_of(work, shards, EVENT_TIME_COLUMN)
        self._shards: dict[str, list[NodeShard]] = defaultdict(list)
        numbers = iter(range(1, 1 << 30))
        for name, node in self._nodes.items():
            for _ in range(node.router.shards):
                self._shards[name].append(NodeShard(node, PrefixedStore(store, next(numbers))))
        self._packers = {
            (name, stream): NodePacker(node, stream)
            for name, node in self._nodes.items()
            for stream in node.fragment.reads
        }
        self._watermarks: dict[str, int] = {}
        """The last watermark of each channel that is read."""
        self._published: dict[str, int] = {}
        """The last watermark that was published on each channel."""
        self.reports: dict[str, list[ShardReport]] = {}
        """What the shards of each node have reported of the last step."""
        self.step_number = 0
        self.positions: dict[str, int] = {}
        data = store.get(MANIFEST)
        if data is not None:
            content = json.loads(data)
            self.step_number, self.positions = content["step"], content["positions"]
            self._watermarks, self._published = content["watermarks"], content["published"]

    def checkpoint(self) -> None:
        """Write down where the site is; the host commits."""
        for shard in (shard for shards in self._shards.values() for shard in shards):
            shard.shard.close()
        content = {
            "step": self.step_number,
            "positions": self.positions,
            "watermarks": self._watermarks,
            "published": self._published,
        }
        self._store.put(MANIFEST, json.dumps(content).encode())

    def step(self, own: Mapping[str, StreamBatch], arrived: Mapping[str, StreamBatch]) -> list[Outgoing]:
        """Take rows of its own streams, by alias, as they come, and batches of channels; returns what is published.

        The watermark of a stream that starts here follows from its rows, batch by batch, unless a batch brings one.
        """
        self.step_number += 1
        self.reports = {}
        for channel, batch in arrived.items():
            self._watermarks[channel] = max(self._watermarks.get(channel, -FOREVER), batch.watermark)
        news = {*own, *(stream for channel in arrived for stream in self.work.arriving[channel])}
        made = {
            name: self._run(node, own, arrived)
            for name, node in self._nodes.items()
            if not news.isdisjoint(node.fragment.reads)
        }
        return list(self._publish(made))

    def _run(self, node: Node, own: Mapping[str, StreamBatch], arrived: Mapping[str, StreamBatch]) -> StreamBatch:
        """One step of a node. Each batch of an own stream is a step, as it may make later rows late."""
        rounds = max([len(own[name].rows) for name in node.fragment.own if name in own], default=1) or 1
        made = StreamBatch()
        for round_number in range(rounds):
            is_last = round_number == rounds - 1
            inputs: dict[str, list[pa.RecordBatch]] = {
                name: own[name].rows[round_number : round_number + 1] for name in node.fragment.own if name in own
            }
            if is_last:
                for channel, batch in arrived.items():
                    for stream in self.work.arriving[channel]:
                        inputs.setdefault(stream, []).extend(batch.rows)
            watermarks: dict[str, int] = {}
            if is_last:
                watermarks = {name: own[name].watermark for name in node.fragment.own if name in own}
                watermarks |= watermarks_of(self.work, node.fragment, self._watermarks)
            segments = self._pack(node, inputs)
            reports = []
            for shard_number, shard in enumerate(self._shards[node.name]):
                results, report = shard.step(segments[shard_number], watermarks)
                made.rows += results
                reports.append(report)
            made.watermark = min(map(progress_of, reports))
            self.reports[node.name] = reports
        return made

    def _pack(self, node: Node, inputs: Mapping[str, Sequence[pa.RecordBatch]]) -> dict[int, list[Segment]]:
        """The segments for each shard of a node."""
        segments: dict[int, list[Segment]] = defaultdict(list)
        for stream in node.fragment.reads:
            for rows in inputs.get(stream, ()):
                for shard, segment in self._packers[node.name, stream].pack(rows):
                    segments[shard].append(segment)
        return segments

    def _publish(self, made: Mapping[str, StreamBatch]) -> Iterator[Outgoing]:
        for outlet in self.work.outlets:
            batch = made.get(outlet.fragment, StreamBatch())
            segments = merged(outgoing_segments(self._nodes[outlet.fragment], outlet, batch.rows))
            # Sites may ship to each other: a batch without news would be answered by one, and so on.
            if segments or batch.watermark > self._published.get(outlet.channel, -FOREVER):
                self._published[outlet.channel] = batch.watermark
                yield Outgoing(outlet, segments, batch.watermark)

    @property
    def nodes(self) -> Iterator[tuple[Node, Sequence[NodeShard]]]:
        """What runs here, and the shards of each."""
        return ((node, self._shards[name]) for name, node in self._nodes.items())

    def watermark(self, channel: str) -> int:
        """The last watermark of a channel that was read."""
        return self._watermarks.get(channel, -FOREVER)

    @property
    def reached(self) -> int:
        """The least watermark of the channels that are read."""
        return min(map(self.watermark, self.work.arriving), default=FOREVER)

    @property
    def result_schema(self) -> pa.Schema | None:
        """The columns of its results; None if none are emitted here."""
        return next((node.schema for node in self._nodes.values() if node.is_final), None)
