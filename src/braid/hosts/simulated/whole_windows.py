"""Whether the windows of a site hold all rows that they should, compared with shards that have read everything."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from braid.channels.batch import Batch
from braid.engine.engine import Engine
from braid.engine.segment import Segment
from braid.model.window import FOREVER
from braid.runtime.sites.node import Node, NodePacker, NodeShard
from braid.runtime.sites.site import SiteRuntime


def missing_rows(
    runtime: SiteRuntime, published: Mapping[str, Sequence[Batch]], since: int, level: int
) -> Iterator[tuple[str, int, int]]:
    """The streams of which a site lacks rows: how many rows there should be in a shard, and how many there are.

    `published` has all batches of channels. A row should be in a window if it starts before `level` and ends after
    `since`, and after all that has come to the site: then it may still be in a result.
    """
    moment = max(since, *(runtime.watermark(channel) for channel in runtime.work.arriving), -FOREVER)
    for node, shards in runtime.nodes:
        if len(node.query.sources) == 1:
            continue  # Nothing probes its window.
        read = {
            stream: [batch for channel in channels for batch in published.get(channel, ())]
            for stream in node.fragment.reads
            if (channels := [channel for channel, streams in runtime.work.arriving.items() if stream in streams])
        }
        segments = _packed(node, read)
        for number, shard in enumerate(shards):
            whole = NodeShard(node)
            whole.shard.engine.restore(segments[number])
            for stream, batches in read.items():
                live = _live(whole.shard.engine, stream, level, moment)
                held = _live(shard.shard.engine, stream, level, moment)
                if batches and held < live:
                    yield stream, live, held


def _packed(node: Node, read: Mapping[str, Sequence[Batch]]) -> Mapping[int, list[Segment]]:
    """The segments for each shard of a node."""
    segments: dict[int, list[Segment]] = defaultdict(list)
    for stream, batches in read.items():
        packer = NodePacker(node, stream)
        for rows in (segment.rows for batch in batches for segment in batch.segments):
            for shard, segment in packer.pack(rows):
                segments[shard].append(segment)
    return segments


def _live(engine: Engine, stream: str, before: int, after: int) -> int:
    """How many rows that start before a moment and end after another one are in a window, or wait to enter it."""
    inlet = engine.inlet(stream)
    starts, ends = inlet.window.lifetimes(inlet.window.tail, inlet.window.next_id)
    return int(((starts < before) & (ends > after)).sum()) + inlet.waiting
