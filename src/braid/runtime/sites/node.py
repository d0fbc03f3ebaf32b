"""One fragment of a site at work, split into shards: rows of its inputs in, rows of its output out.

A host packs the rows of each input for the shards (`NodePacker`), and steps each shard with what it got (`NodeShard`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from braid.adapt.observation import SAMPLING, KeyColumn
from braid.adapt.sketch import KeySketch
from braid.engine.engine import Engine
from braid.engine.input.screen import Screen
from braid.engine.keys.hashing import key_words
from braid.engine.segment import Segment
from braid.model.plan import Plan
from braid.model.query import Query
from braid.model.window import FOREVER
from braid.planning.lowering.one_site import lower
from braid.runtime.engine_cache import EngineCache
from braid.runtime.fingerprint import meaning
from braid.runtime.packing import SourcePacker, TimedRows, conform
from braid.runtime.report import ShardReport
from braid.runtime.routing import Router
from braid.runtime.shard import Clock, Shard, ShardSettings
from braid.runtime.sites.fragment import Fragment
from braid.runtime.store import Store


@dataclass(frozen=True)
class Node:
    """A fragment with a name, and the shards that its work is split into.

    Final nodes, whose results are those of the query, add the event time in a column called `event_time`.
    """

    name: str
    fragment: Fragment
    router: Router
    event_time: str

    @property
    def query(self) -> Query:
        return self.fragment.local_query

    @property
    def is_final(self) -> bool:
        return self.fragment.output is None

    @cached_property
    def plan(self) -> Plan:
        """The plan that a shard starts with."""
        return Plan.in_text_order(self.query)

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of its output."""
        return Engine(lower(self.plan), event_time=self.event_time if self.is_final else None).schema

    @cached_property
    def sketcher(self) -> KeySketcher | None:
        """What sketches the keys of an intake; None for other nodes."""
        fragment = self.fragment
        is_intake = fragment.relays and fragment.inputs[0].at_origin and not fragment.is_unfiltered
        return KeySketcher(fragment.query, fragment.inputs[0].name) if is_intake else None

    @cached_property
    def settings(self) -> ShardSettings:
        own = self.fragment.own
        return ShardSettings(
            event_time=self.event_time if self.is_final else None,
            fingerprint={"query": meaning(self.query), "text": self.query.text},
            origins={alias: self.fragment.query.source(alias).declared.name for alias in own},
            announced=frozenset(self.fragment.reads) - own,
            # Two inputs have one order only: there is nothing to choose by samples.
            sampling=SAMPLING if len(self.fragment.inputs) > 2 else 0.0,
        )


class KeySketcher:
    """Sketches the join keys of a stream where it enters a query, by the attribute classes of the whole query."""

    def __init__(self, query: Query, alias: str) -> None:
        source, classes = query.source(alias), query.graph.classes_of(alias)
        self._alias = alias
        self._types = {class_number: query.graph.classes[class_number].type for class_number in classes}
        self._screen = Screen(source, (), classes)

    def sketches(self, rows: Iterable[pa.RecordBatch]) -> dict[KeyColumn, KeySketch]:
        sketches: dict[KeyColumn, KeySketch] = {}
        for batch in rows:
            for class_number, values in self._screen.values(batch).items():
                sketch = sketches.setdefault((self._alias, class_number), KeySketch())
                keys = values.drop_null()
                sketch.feed(key_words(keys), self._types[class_number], keys)
        return sketches


class NodePacker:
    """Cuts rows of one input into segments, one for each shard of a node."""

    def __init__(self, node: Node, stream: str) -> None:
        self._fragment = node.fragment
        self._stream = node.fragment.input(stream)
        self._packer = SourcePacker(node.query, node.router, node.query.source(stream))
        self._time = node.query.source(stream).declared.time

    def pack(self, rows: pa.RecordBatch) -> Iterator[tuple[int, Segment]]:
        """Rows as they are where the stream starts, or as they travel."""
        if self._stream.at_origin:
            declared = self._fragment.query.source(self._stream.name).declared
            timed = TimedRows.of(conform(rows, self._stream.schema), declared.time)
            prepared = self._fragment.prepare(self._stream, timed.rows)
            return self._packer.route(prepared, timed.newest, timed.untimed)
        prepared = self._fragment.prepare(self._stream, self._stream.received(rows))
        return self._packer.route(prepared, TimedRows.of(prepared, self._time).newest)


class NodeShard:
    """One shard of a node, opened where its last committed step left it."""

    def __init__(
        self,
        node: Node,
        store: Store | None = None,
        engines: EngineCache | None = None,
        clock: Clock = lambda: 0.0,
    ) -> None:
        self.node = node
        self.shard = Shard(node.query, node.plan, node.settings, store, engines, clock)

    def step(
        self, segments: Iterable[Segment], watermarks: Mapping[str, int], messages: Iterable[bytes] = ()
    ) -> tuple[list[pa.RecordBatch], ShardReport]:
        """Take segments of its inputs; `watermarks` are those of the inputs that come on channels."""
        results, report = self.shard.step(map(self._in_time, segments), messages, announced_after=watermarks)
        if self.node.sketcher is not None:
            keys = self.node.sketcher.sketches(results)
            report = replace(report, observation=replace(report.observation, keys=keys))
        return results, report

    def admit(self, segments: Iterable[Segment], watermark: int) -> tuple[list[pa.RecordBatch], ShardReport]:
        """Take segments of the only input of an intake, of which rows before the watermark are late."""
        (stream,) = self.node.fragment.reads
        self.shard.announce({stream: watermark})
        return self.step(segments, {})

    def _in_time(self, segment: Segment) -> Segment:
        if segment.stream not in self.node.fragment.own:
            return segment
        stream = self.node.fragment.input(segment.stream)
        rows = self.node.fragment.in_time(stream, segment.rows, self.shard.watermark(segment.stream))
        return segment if rows is segment.rows else replace(segment, rows=rows)


def progress_of(report: ShardReport) -> int:
    """The watermark of what a shard makes: the least of those of its inputs."""
    return min((stream.watermark for stream in report.progress.values()), default=-FOREVER)
