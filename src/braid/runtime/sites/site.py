"""One site of a deployment at work: rows of its own streams and what others ship in, what it ships and emits out."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from braid.engine.input.lifetime import event_times
from braid.engine.input.screen import Screen
from braid.engine.kernels.expression import compile_expression
from braid.engine.output.emitter import EVENT_TIME_TYPE
from braid.engine.segment import Segment
from braid.model.output import Output
from braid.model.plan import Plan
from braid.model.predicate import Predicate
from braid.model.query import Query
from braid.model.window import FOREVER
from braid.runtime.shard import Shard, ShardSettings
from braid.runtime.sites.compiling import Merging, Shipment, SiteWork
from braid.runtime.sites.fragment import Fragment
from braid.runtime.sites.guarding import guarded
from braid.runtime.sites.wire import WireStream
from braid.runtime.store import PrefixedStore, Store

EVENT_TIME = "event_time"

MANIFEST = (-1, 0)
"""The key of what a site writes down about itself; those of its fragments have prefixes."""


@dataclass
class StreamBatch:
    """Rows of a stream, and its watermark after them."""

    rows: list[pa.RecordBatch] = field(default_factory=list)
    watermark: int = -FOREVER

    @property
    def row_count(self) -> int:
        return sum(batch.num_rows for batch in self.rows)


@dataclass
class StepOutput:
    """What a step of a site has brought: batches to ship, where a shipment has news, and results."""

    shipped: list[tuple[Shipment, StreamBatch]]
    results: list[pa.RecordBatch]


class SourceStage:
    """A stream where it starts: late rows and those that fail the conditions on it alone go no further."""

    def __init__(self, query: Query, alias: str, predicates: Sequence[Predicate]) -> None:
        self._source = query.source(alias)
        # A window that counts rows counts them all; the fragment that has it checks the conditions behind it.
        self._screen = Screen(self._source, () if self._source.window.counts_rows else predicates, {})
        self._columns = [column.name for column in WireStream(query, alias, (alias,)).columns]
        self.watermark = -FOREVER
        self.received = 0
        self.late = 0
        self.untimed = 0

    def take(self, batches: Iterable[pa.RecordBatch], watermark: int | None = None) -> StreamBatch:
        """Batches as they come; the watermark moves on with each, and then to one that is given."""
        kept = [self._passing(rows) for rows in batches]
        if watermark is not None:
            self.watermark = max(self.watermark, watermark)
        return StreamBatch(kept, self.watermark)

    def figures(self) -> list[int]:
        """What `restore` takes: the watermark, and the rows counted."""
        return [self.watermark, self.received, self.late, self.untimed]

    def restore(self, figures: Sequence[int]) -> None:
        self.watermark, self.received, self.late, self.untimed = figures

    def _passing(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        declared = self._source.declared
        times = rows.column(declared.time)
        self.received += rows.num_rows
        self.untimed += times.null_count
        rows = rows.filter(pc.is_valid(times)) if times.null_count else rows
        moments = event_times(rows.column(declared.time))
        in_time = moments >= self.watermark
        self.late += int(len(in_time) - in_time.sum())
        if len(moments):
            self.watermark = max(self.watermark, int(moments.max()) - declared.lateness)
        return rows.take(pa.array(self._screen.passing(rows, {}, in_time))).select(self._columns)


class FragmentStage:
    """The shard of a fragment, and the watermark of what it makes: the least of those of its inputs."""

    def __init__(self, fragment: Fragment, store: Store | None) -> None:
        self.fragment = fragment
        query = fragment.local_query
        event_time = EVENT_TIME if fragment.output is None else None
        settings = ShardSettings(event_time, announced=frozenset(fragment.reads), samples=False)
        self._shard = Shard(query, Plan.in_text_order(query), settings, store)

    def take(self, inputs: Mapping[str, StreamBatch]) -> StreamBatch:
        segments = []
        for name in self.fragment.reads:
            segments += [self.fragment.prepare(Segment(name, rows)) for rows in inputs[name].rows if rows.num_rows]
        after = {name: inputs[name].watermark for name in self.fragment.reads}
        results, _ = self._shard.step(segments, announced_after=after)
        return StreamBatch(results, min(after.values()))

    def checkpoint(self) -> None:
        self._shard.close()

    @property
    def schema(self) -> pa.Schema:
        return self._shard.engine.schema


class Projection:
    """Joined rows that arrive at the sink to results: the columns that the query selects, and the event time."""

    def __init__(self, query: Query, stream: WireStream) -> None:
        self._stream = stream
        outputs = [output for output in query.outputs if isinstance(output, Output)]
        self._outputs = [compile_expression(output.expression, stream.type_of) for output in outputs]
        fields = [pa.field(output.name, made.type) for output, made in zip(outputs, self._outputs, strict=True)]
        self.schema = pa.schema([*fields, pa.field(EVENT_TIME, EVENT_TIME_TYPE)])

    def __call__(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        names = self._stream.field_names
        columns = []
        for output in self._outputs:
            columns.append(output({column: rows.column(names[column]) for column in output.columns}, rows.num_rows))
        starts, _ = self._stream.lifetimes(rows)
        columns.append(pa.array(starts).cast(EVENT_TIME_TYPE))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


class SiteRuntime:
    """Runs the work of one site, step by step, from where its store says that it was.

    `positions` is for the host: how far it has read each of its inputs. It is kept with everything else.
    """

    def __init__(self, work: SiteWork, store: Store | None = None) -> None:
        self.work = work
        self._store = store
        self.sources = {alias: SourceStage(work.query, alias, found) for alias, found in work.sources.items()}
        fragments = [(name, node) for name, node in work.nodes if isinstance(node, Fragment)]
        self._fragments = {
            name: FragmentStage(node, None if store is None else PrefixedStore(store, number))
            for number, (name, node) in enumerate(fragments, 1)
        }
        self._projections = {stream.name: Projection(work.query, stream) for stream in work.emitted}
        self._watermarks: dict[str, int] = {}
        self._shipped: dict[int, int] = {}
        """How far each shipment, by number, has told that its stream has come."""
        self.step_number = 0
        self.positions: dict[str, int] = {}
        if store is not None:
            self._restore(store)

    def _restore(self, store: Store) -> None:
        data = store.get(MANIFEST)
        if data is None:
            return
        content = json.loads(data)
        self.step_number, self.positions = content["step"], content["positions"]
        self._watermarks = content["watermarks"]
        self._shipped = {int(number): watermark for number, watermark in content["shipped"].items()}
        for alias, figures in content["sources"].items():
            self.sources[alias].restore(figures)

    def checkpoint(self) -> None:
        """Write down where the site is; the host commits."""
        assert self._store is not None
        for stage in self._fragments.values():
            stage.checkpoint()
        content = {
            "step": self.step_number,
            "positions": self.positions,
            "watermarks": self._watermarks,
            "shipped": self._shipped,
            "sources": {alias: stage.figures() for alias, stage in self.sources.items()},
        }
        self._store.put(MANIFEST, json.dumps(content).encode())

    def step(self, own: Mapping[str, StreamBatch], arrived: Mapping[str, StreamBatch]) -> StepOutput:
        """Take rows of its own streams, by alias, as they come, and batches that others shipped, by channel.

        The watermark of a stream that starts here is what its rows tell, unless its batch has one.
        """
        self.step_number += 1
        streams: dict[str, StreamBatch] = {}
        for alias, stage in self.sources.items():
            batch = own.get(alias, StreamBatch())
            given = batch.watermark if batch.watermark > -FOREVER else None
            streams[alias] = stage.take(batch.rows, given)
        streams |= self._arrived(arrived)
        results: list[pa.RecordBatch] = []
        for name, node in self.work.nodes:
            if isinstance(node, Merging):
                streams[name] = _merged([streams[read] for read in node.reads])
                continue
            streams[name] = self._fragments[name].take(streams)
            if node.output is None:
                results += streams[name].rows
        for name, project in self._projections.items():
            results += [project(rows) for rows in streams[name].rows if rows.num_rows]
        return StepOutput(list(self._shipments(streams)), results)

    def _arrived(self, arrived: Mapping[str, StreamBatch]) -> dict[str, StreamBatch]:
        """The streams that others ship here; one that comes by several channels is as far as the last of them."""
        by_stream: dict[str, list[StreamBatch]] = defaultdict(list)
        for channel, stream in self.work.arriving.items():
            batch = arrived.get(channel, StreamBatch())
            self._watermarks[channel] = max(self._watermarks.get(channel, -FOREVER), batch.watermark)
            by_stream[stream.name].append(StreamBatch(batch.rows, self._watermarks[channel]))
        return {name: _merged(batches) for name, batches in by_stream.items()}

    def _shipments(self, streams: Mapping[str, StreamBatch]) -> Iterator[tuple[Shipment, StreamBatch]]:
        for number, shipment in enumerate(self.work.shipments):
            batch = streams[shipment.stream.name]
            guarded_rows = [guarded(rows, shipment.stream, shipment.guard) for rows in batch.rows]
            rows = [part for part in guarded_rows if part.num_rows]
            # Sites may ship to each other: a batch without news would be answered by one, and so on.
            if rows or batch.watermark > self._shipped.get(number, -FOREVER):
                self._shipped[number] = batch.watermark
                yield shipment, StreamBatch(rows, batch.watermark)

    @property
    def result_schema(self) -> pa.Schema | None:
        """The columns of its results; None if none are emitted here."""
        finals = [stage.schema for stage in self._fragments.values() if stage.fragment.output is None]
        finals += [projection.schema for projection in self._projections.values()]
        return finals[0] if finals else None


def _merged(batches: Sequence[StreamBatch]) -> StreamBatch:
    """Several streams as one, which is as far as the last of them."""
    rows = [part for batch in batches for part in batch.rows]
    return StreamBatch(rows, min(batch.watermark for batch in batches))
