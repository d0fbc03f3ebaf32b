"""A shard: an engine together with its watermarks, its control messages, its rows in a store and its reports.

A shard does no I/O and reads no clock: the host provides the store, the engine cache and the clock. On Spark a shard is
opened, stepped once and closed in every micro-batch. The local host runs a whole query in one shard without a store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from braid.adapt.expectation import UNKNOWN, Expectation
from braid.adapt.observation import SAMPLING, Observation
from braid.engine.engine import Engine
from braid.engine.keys.hashing import FULL_HASH
from braid.engine.segment import Segment
from braid.errors import BraidError
from braid.model.plan import Plan, Written
from braid.model.query import Query
from braid.model.window import FOREVER
from braid.planning.lowering.one_site import lower
from braid.runtime.engine_cache import EngineCache
from braid.runtime.fingerprint import check_fingerprint, fingerprint_change
from braid.runtime.manifest import Manifest
from braid.runtime.messages import ChangePlan, PassIdle, SpreadKeys, in_order, parse_message
from braid.runtime.observing import Watch
from braid.runtime.query_spec import QuerySpec
from braid.runtime.report import Seconds, ShardReport, StateSize, StreamProgress
from braid.runtime.retention import Retention
from braid.runtime.segment_log import read_manifest, write_manifest
from braid.runtime.store import Store
from braid.runtime.watermarks import Watermarks, branch_key

Clock = Callable[[], float]
"""Returns the time in seconds since any fixed moment; a shard only measures durations with it."""


@dataclass(frozen=True)
class ShardSettings:
    """How a shard runs its query.

    `event_time`, `strategy` and `hash_bits` go to the engine. `fingerprint` describes what must not change between
    runs on the same store. `origins` maps the stream names in segments to the names of declared streams, which control
    messages use; a stream that is missing in `origins` has the same name in both. The host announces the watermarks of
    the streams in `announced`. `sampling` is the most work that samples may take, as a share of all other work: with 0,
    no matches and no keys are ever sampled.
    """

    event_time: str | None = None
    strategy: str = "jisc"
    hash_bits: int = FULL_HASH
    fingerprint: Mapping[str, Any] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)
    announced: frozenset[str] = frozenset()
    sampling: float = SAMPLING

    @classmethod
    def of(cls, spec: QuerySpec) -> ShardSettings:
        """The settings of every shard of a query."""
        origins = {source.alias: source.declared.name for source in spec.query.inputs}
        return cls(
            event_time=spec.event_time,
            fingerprint=spec.fingerprint,
            origins=origins,
            announced=frozenset(alias for alias, stream in origins.items() if stream in spec.watermarked),
        )


class Shard:
    """One of the parts that the work of a query is split into, opened where its last committed step left it.

    Without a store the shard lives in memory only. Without an engine cache the engine is rebuilt from the store.
    """

    def __init__(
        self,
        query: Query,
        plan: Plan | Written,
        settings: ShardSettings,
        store: Store | None = None,
        engines: EngineCache | None = None,
        clock: Clock = lambda: 0.0,
    ) -> None:
        self._query = query
        self._settings = settings
        self._store = store
        self._engines = engines
        self._clock = clock
        self._manifest = self._read_manifest(plan)
        self.plan = Plan.of(query, self._manifest.plan)
        self.against = self._plan_against(self._manifest.against)
        """The plan that the plan is on trial against."""
        self._watermarks = Watermarks(query, self._manifest.newest, self._manifest.watermarks, settings.announced)
        self._retention = None if store is None else Retention(query, store, self._manifest, self._watermarks)
        self.rejections: list[str] = []
        """Why control messages of the last step were rejected."""
        self._engine_watermarks: dict[str, int] = {}
        """The watermarks that the engine has received since the shard was opened."""
        self.engine, self._engine_origin = self._open_engine()

    @classmethod
    def of(cls, spec: QuerySpec, store: Store, engines: EngineCache | None, clock: Clock) -> Shard:
        """A shard of a query that a host has split into several."""
        return cls(spec.narrow, spec.plan, ShardSettings.of(spec), store, engines, clock)

    def change(self, plan: Plan, against: Plan | None = None, expected: Expectation = UNKNOWN) -> None:
        """Go on with another plan; the windows and the result stay the same.

        If there is a plan `against`, the new plan is on trial: it takes new rows as long as they cost no more by it, or
        all of them if a plan is a tree. What is `expected` of the trial is kept for whoever goes on with it.
        """
        if (plan, against) != (self.plan, self.against):
            self.engine.change(lower(plan), None if against is None else lower(against))
            self.plan, self.against = plan, against
            self._manifest.plan = plan.written
            self._manifest.against = None if against is None else against.written
            self._manifest.expected = None if against is None else expected.to_plain()

    def _plan_against(self, written: Written | None) -> Plan | None:
        return None if written is None else Plan.of(self._query, written)

    def announce(self, watermarks: Mapping[str, int]) -> None:
        """Raise the watermarks of streams, before the next step."""
        self._watermarks.announce(watermarks)

    def watermark(self, stream: str) -> int:
        """The event time before which rows of a stream are late."""
        return self._watermarks.of(stream)

    def step(
        self,
        segments: Iterable[Segment],
        messages: Iterable[bytes] = (),
        *,
        announced: Mapping[str, int] | None = None,
        announced_after: Mapping[str, int] | None = None,
        routed_by: int = 0,
    ) -> tuple[list[pa.RecordBatch], ShardReport]:
        """Take a batch; returns its results and a report.

        `announced` are watermarks that hold for the rows of this batch, `announced_after` those that hold after it.
        `routed_by` is the version of the table of spread keys that the batch was routed by.
        """
        if routed_by < self._manifest.routed_by:
            raise BraidError(
                f"this batch was routed by version {routed_by} of the table of spread keys, and earlier ones by "
                f"version {self._manifest.routed_by}; start the query again"
            )
        self._manifest.routed_by = routed_by
        self._manifest.step += 1
        self._watermarks.announce(announced or {})
        batch = [self._receive(segment) for segment in segments]
        self._obey(messages)
        watch = Watch(self.engine)
        started = self._clock()
        results = self.engine.step(batch)
        self._watermarks.advance(batch)
        self._watermarks.announce(announced_after or {})
        results += self._tell_watermarks(batch)
        joined = self._clock()
        samples = self._can_afford_sample(watch)
        observation = watch.observe(batch, samples=samples)
        seconds = Seconds(join=joined - started, watch=self._clock() - joined)
        if self._retention is not None:
            self._retention.update(self.engine)
        return results, self._report(batch, watch, observation, seconds)

    def _can_afford_sample(self, watch: Watch) -> bool:
        """Whether to sample in this step: small batches are sampled less often, so that most work is still joins.

        What is left over counts for the next sample. The second batch can always be sampled: it is the first one for
        which plans can be compared, because rates are known.
        """
        share = self._settings.sampling
        if not share:
            return False
        needed, unsampled = self.engine.sample_cost / share, self._manifest.unsampled
        available = (unsampled or 0) + watch.work(is_stored=self._store is not None)
        is_affordable = available >= needed
        left = min(available - needed, needed) if is_affordable else available
        self._manifest.unsampled = int(left if unsampled is not None else max(left, needed))
        return is_affordable

    def finish(self) -> list[pa.RecordBatch]:
        """No more rows will come: returns the results that were waiting for later rows."""
        return self.engine.finish()

    def close(self) -> None:
        """Leave the engine in the cache and write the manifest; then the host commits the store."""
        self._manifest.engine = "" if self._engines is None else self._engines.close(self.engine)
        if self._store is not None:
            write_manifest(self._store, self._manifest)

    def _read_manifest(self, plan: Plan | Written) -> Manifest:
        """The manifest in the store, or a new one that starts with `plan`; `BraidError` if it is of another query."""
        fingerprint = self._settings.fingerprint
        manifest = None if self._store is None else read_manifest(self._store)
        if manifest is None:
            return Manifest(fingerprint, Plan.of(self._query, plan).written)
        if manifest.step:
            check_fingerprint(manifest.fingerprint, fingerprint)
        if fingerprint_change(manifest.fingerprint, fingerprint) is not None:
            manifest.fingerprint = fingerprint
            manifest.engine = ""  # The cached engine has the columns of the first query.
        return manifest

    def _open_engine(self) -> tuple[Engine, str]:
        """The engine, and where it came from, in the words of `ShardReport.engine`."""
        if self._engines is not None:
            cached = self._engines.open(self._manifest.engine, self._query, self._build)
            if cached is not None:
                return cached
        engine = self._build()
        if self._retention is not None:
            self._retention.restore(engine)
        return engine, "rebuilt" if self._manifest.step else "new"

    def _build(self) -> Engine:
        settings = self._settings
        engine = Engine(
            lower(self.plan),
            event_time=settings.event_time,
            strategy=settings.strategy,
            hash_bits=settings.hash_bits,
        )
        if self.against is not None:
            engine.change(engine.program, lower(self.against))
        return engine

    def _receive(self, segment: Segment) -> Segment:
        """Keep a segment; returns it with the watermark that decides which of its rows are late."""
        self._watermarks.announce({segment.stream: segment.watermark})
        if self._retention is not None:
            self._retention.keep(segment)
        return replace(segment, watermark=self._watermarks.of(segment.stream))

    def _obey(self, messages: Iterable[bytes]) -> None:
        """Do what control messages ask for. An invalid message is counted as rejected and changes nothing."""
        self.rejections = []
        for payload in in_order(messages):
            try:
                match parse_message(payload):
                    case ChangePlan(plan, against, expected):
                        self.change(Plan.of(self._query, plan), self._plan_against(against), expected)
                    case PassIdle(reached):
                        self._pass_idle(reached)
                    case SpreadKeys(table):
                        self._manifest.told = max(self._manifest.told, table.version)
            except (TypeError, RecursionError, BraidError) as problem:
                self._manifest.rejected += 1
                self.rejections.append(f"{problem}: {payload[:200]!r}")

    def _pass_idle(self, reached: Mapping[str, int]) -> None:
        """Raise the watermarks of idle streams. `reached` has the names of declared streams, not those in segments."""
        for source in self._query.inputs:
            stream = source.declared.name
            origin = self._settings.origins.get(stream, stream)
            if origin in reached:
                self._watermarks.reach(stream, reached[origin])
            for number, branch in enumerate(source.declared.branches):
                if branch.name in reached:
                    self._watermarks.reach_branch(stream, number, reached[branch.name])

    def _tell_watermarks(self, batch: Sequence[Segment]) -> list[pa.RecordBatch]:
        """Tell the engine the watermarks that hold after a batch; returns the results that were waiting for them.

        The segments of the local host carry their watermarks, so its runs need no second step of the engine.
        """
        self._engine_watermarks |= {segment.stream: segment.watermark for segment in batch}
        watermark_segments = self._watermarks.progress()
        watermarks = {segment.stream: segment.watermark for segment in watermark_segments}
        if watermarks == self._engine_watermarks:
            return []
        self._engine_watermarks = watermarks
        return self.engine.step(watermark_segments)

    def _report(
        self, batch: Sequence[Segment], watch: Watch, observation: Observation, seconds: Seconds
    ) -> ShardReport:
        entries = self._manifest.all_entries
        rows = sum(entry.rows for entry in entries)
        size = sum(entry.size for entry in entries)
        arrived = [segment for segment in batch if segment.newest > -FOREVER]
        active = {segment.stream for segment in arrived}
        active_branches = {branch_key(segment.stream, segment.branch) for segment in arrived}
        progress = {}
        for source in self._query.inputs:
            stream = source.declared.name
            progress[source.alias] = StreamProgress(
                stream in active, self._watermarks.of(stream), self._manifest.newest.get(stream, -FOREVER)
            )
            for number in range(len(source.declared.branches)):
                key = branch_key(stream, number)
                progress[branch_key(source.alias, number)] = StreamProgress(
                    key in active_branches,
                    self._watermarks.of_branch(stream, number),
                    self._manifest.newest.get(key, -FOREVER),
                )
        return ShardReport(
            plan=self._manifest.plan,
            against=self._manifest.against,
            expected=self._manifest.expected,
            observation=observation,
            joins=watch.joins(),
            progress=progress,
            rows_out=watch.emitted(),
            waiting=watch.waiting(),
            rejected_messages=self._manifest.rejected,
            state=StateSize(rows, size, len(entries)),
            engine=self._engine_origin,
            seconds=seconds,
            routed_by=self._manifest.routed_by,
            told=self._manifest.told,
            copied=_copied(batch),
        )


def _copied(batch: Sequence[Segment]) -> dict[str, int]:
    """How many rows of a batch are copies of rows whose key is spread, by stream, as far as this shard is told."""
    counts: dict[str, int] = {}
    for segment in batch:
        if segment.copied:
            counts[segment.stream] = counts.get(segment.stream, 0) + segment.copied
    return counts
