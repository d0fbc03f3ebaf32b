"""The shards of a query, fed batch by batch as a host does it: pack, route, step, then commit or fail."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from braid.engine.segment import Segment
from braid.language import parse
from braid.model.plan import Plan
from braid.model.query import Query
from braid.model.stream import Stream
from braid.runtime.engine_cache import EngineCache
from braid.runtime.manifest import Manifest
from braid.runtime.packing import SourcePacker
from braid.runtime.query_spec import QuerySpec
from braid.runtime.report import ShardReport
from braid.runtime.resharding import Resharder, fill
from braid.runtime.routing import router_for
from braid.runtime.segment_log import read_manifest
from braid.runtime.shard import Shard
from braid.runtime.spread_protocol import SpreadProtocol
from braid.runtime.spread_table import SpreadTable
from braid.runtime.store import DictionaryStore
from braid.runtime.stored_query import stored_spec
from braid.testing.case import Case
from braid.testing.changes import random_plan, random_sequences
from braid.testing.choices import Choices, SeededChoices
from braid.testing.parts import random_parts

RESULT_TIME = "event time"
"""The result column with the event time of each result."""

FAR = 4_000_000_000
"""A time in seconds since 1970 that is later than any time of a case."""


class ShardedCase:
    """The shards of a case's query with their stores. `engines` makes the engine cache for opening a shard."""

    def __init__(
        self,
        case: Case,
        shards: int,
        engines: Callable[[], EngineCache] | None = None,
        *,
        watermarked: frozenset[str] = frozenset(),
    ) -> None:
        declared = {
            name: Stream(name, table.schema, case.time[name], case.lateness[name])
            for name, table in case.streams.items()
        }
        query = parse(case.text, declared)
        used_streams = {source.declared.name for source in query.inputs}
        spec = QuerySpec(
            case.text,
            tuple(stream for name, stream in declared.items() if name in used_streams),
            Plan.of(query, case.plan).written,
            router_for(query, shards),
            RESULT_TIME,
            watermarked=watermarked,
        )
        self.spec = QuerySpec.from_json(spec.to_json())  # A host sends it to its workers as JSON.
        self.stores = [DictionaryStore() for _ in range(self.spec.router.shards)]
        self.results: list[pa.Table] = []
        self.reports: list[ShardReport] = []
        self.spreading = SpreadProtocol(self.spec.narrow, self.spec.router)
        self.table = SpreadTable()
        """The table by which packers route; it may be an older one than that of `spreading`."""
        self._engines = engines
        self._packers = self._make_packers()

    @property
    def engines_opened(self) -> list[str]:
        """How each engine was opened (new, hot, mapped or rebuilt), batch by batch and shard by shard."""
        return [report.engine for report in self.reports]

    def batch(
        self,
        rows: Mapping[str, pa.Table],
        message: bytes | None = None,
        *,
        attempts: int = 1,
        announced: Mapping[str, int] | None = None,
    ) -> None:
        """Process one batch. All attempts but the last fail at their end, before the commit."""
        packed = self._pack(rows)
        messages = [] if message is None else [message]
        for store, payloads in zip(self.stores, packed, strict=True):
            for attempt in range(attempts):
                store.rollback()
                engines = None if self._engines is None else self._engines()
                shard = Shard.of(self.spec, store, engines, lambda: 0.0)
                segments = [Segment.from_bytes(payload) for payload in payloads]
                results, report = shard.step(segments, messages, announced=announced, routed_by=self.table.version)
                shard.close()
                if attempt == attempts - 1:
                    store.commit()
                    report = ShardReport.from_json(report.to_json())
                    self.reports.append(report)
                    self.results.append(_copy(pa.Table.from_batches(results, shard.engine.schema)))

    def observe(self) -> None:
        """Let the protocol of spreading take its next steps after the last batch."""
        report = self.reports[-1]
        newest = {alias: progress.newest for alias, progress in report.progress.items()}
        watermarks = {alias: progress.watermark for alias, progress in report.progress.items()}
        self.spreading.observe(report.routed_by, newest, watermarks)

    def rescale(self, shards: int) -> None:
        """Go on with another number of shards, as after a restart on a checkpoint that was rescaled."""
        manifests = {shard: self.manifest(shard) for shard in range(len(self.stores))}
        before = stored_spec(manifests[0].fingerprint)
        after = replace(before, router=router_for(before.query, shards))
        resharder = Resharder(before, after, manifests, self.spreading.table)
        segments: list[list[Segment]] = [[] for _ in range(after.router.shards)]
        for shard, store in enumerate(self.stores):
            for key, data in store.committed.items():
                for new_shard, segment in resharder.cut(shard, key, data):
                    segments[new_shard].append(Segment.from_bytes(segment.to_bytes()))
        self.spec = replace(self.spec, router=after.router)
        self._packers = self._make_packers()
        self.spreading = SpreadProtocol(self.spec.narrow, self.spec.router)
        self.table = SpreadTable()
        self.stores = [DictionaryStore() for _ in segments]
        for store, moved in zip(self.stores, segments, strict=True):
            fill(store, after.narrow, resharder.manifest(), moved)
            store.commit()

    def end(self) -> None:
        """Send one row of each stream, in the far future, so that all results of earlier rows become final."""
        self.batch({stream.name: _last_row(stream) for stream in self.spec.streams})

    def result(self) -> pa.Table:
        return pa.concat_tables(self.results).drop_columns([RESULT_TIME])

    def result_before_end(self) -> pa.Table:
        """The result without that of the rows of `end`, which outer joins give too."""
        results = pa.concat_tables(self.results)
        last = pa.scalar(FAR * 1_000_000, pa.timestamp("us", "UTC"))
        return results.filter(pc.less(results.column(RESULT_TIME), last)).drop_columns([RESULT_TIME])

    def assert_results_are_not_late(self) -> None:
        """Fail if a result is older than the watermarks before its batch: Spark would refuse it."""
        shards = self.spec.router.shards
        for position in range(shards, len(self.reports)):
            progress = self.reports[position - shards].progress.values()
            watermark = min(stream.watermark for stream in progress)
            for time in self.results[position].column(RESULT_TIME).cast(pa.int64()).to_pylist():
                assert time >= watermark, f"a result at {time} comes after the watermarks have passed {watermark}"

    def manifest(self, shard: int = 0) -> Manifest:
        manifest = read_manifest(self.stores[shard])
        assert manifest is not None
        return manifest

    def _make_packers(self) -> list[tuple[str, SourcePacker]]:
        """A packer for each source, and the name of the stream it reads."""
        spec = self.spec
        packers = [SourcePacker(spec.narrow, spec.router, source) for source in spec.narrow.inputs]
        return [(source.declared.name, packer) for source, packer in zip(spec.query.inputs, packers, strict=True)]

    def _pack(self, rows: Mapping[str, pa.Table]) -> list[list[bytes]]:
        """The segments of a batch as bytes, by shard."""
        packed: list[list[bytes]] = [[] for _ in self.stores]
        for stream, packer in self._packers:
            if rows[stream].num_rows:
                for shard, segment in packer.pack(rows[stream].combine_chunks().to_batches()[0], self.table):
                    packed[shard].append(segment.to_bytes())
        return packed


def batches(case: Case) -> list[dict[str, pa.Table]]:
    """The rows of a case in order of arrival, batch by batch; at least one batch."""
    longest = max(1, *(table.num_rows for table in case.streams.values()))
    batch_rows = case.batch_rows or longest
    return [
        {name: table.slice(first, batch_rows) for name, table in case.streams.items()}
        for first in range(0, longest, batch_rows)
    ]


def _last_row(stream: Stream) -> pa.Table:
    """A row in the far future, with nulls in all other columns."""
    columns = {field.name: pa.nulls(1, field.type) for field in stream.schema}
    kind = stream.schema.field(stream.time).type
    scale = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
    columns[stream.time] = pa.array([FAR * scale], pa.int64()).cast(kind)
    return pa.table(columns, schema=stream.schema)


def _copy(table: pa.Table) -> pa.Table:
    """Copy results, as a host does: they may be views of arrays that are valid for this batch only."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return pa.ipc.open_stream(sink.getvalue()).read_all()


def run_with_faults(
    case: Case,
    seed: int,
    engines: Callable[[], EngineCache] | None = None,
    between: Callable[[np.random.Generator], None] = lambda generator: None,
) -> ShardedCase:
    """Run a case in a random number of shards, with failed attempts and plan changes.

    `between` is called after each batch and may damage anything that the cluster must recover from.
    """
    generator = np.random.default_rng(seed)
    cluster = ShardedCase(case, int(generator.integers(1, 7)), engines)
    choices = SeededChoices(seed)
    for rows in batches(case):
        message = random_message(choices, case, cluster.spec.query) if generator.random() < 0.3 else None
        cluster.batch(rows, message, attempts=int(generator.integers(1, 3)))
        between(generator)
    return cluster


PLAIN = "SELECT a.n AS an, b.n AS bn FROM a [RANGE 1 HOUR], b [RANGE 1 HOUR] WHERE a.k = b.k"


def random_message(choices: Choices, case: Case, query: Query) -> bytes:
    """A change to any plan, with parts or without, which may be on trial against another one."""
    aliases = query.aliases
    if choices.once_in(3):
        return json.dumps({"plan": random_parts(choices, case, query)}).encode()
    if choices.once_in(2):
        return json.dumps({"plan": random_plan(choices, aliases)}).encode()
    random = random_plan if choices.once_in(3) else random_sequences
    plan, against = random(choices, aliases), random(choices, aliases)
    return json.dumps({"plan": plan, "against": against, "expected": [0.5, None]}).encode()


def plain_case(text: str = PLAIN, rows: int = 40) -> Case:
    """Streams `a` and `b` with one row per second, all with the same key, in batches of ten."""
    table = pa.table({"ts": pa.array(range(rows), pa.timestamp("s")), "k": [1] * rows, "n": range(rows)})
    names = ("a", "b")
    return Case(text, dict.fromkeys(names, table), dict.fromkeys(names, "ts"), dict.fromkeys(names, 0), None, 10)


def holds_back(case: Case) -> bool:
    """Whether results wait for a watermark: windows count rows, or rows of a tested stream decide."""
    text = case.text.upper()
    return counts_rows(case) or "EXCEPT" in text or "SELECT" in text.removeprefix("SELECT")


def counts_rows(case: Case) -> bool:
    """Whether a window of the case counts rows. Its last results then wait for further rows."""
    return "ROWS" in case.text.upper()
