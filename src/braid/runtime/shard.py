"""A shard: an engine with everything a host needs around it.

A shard keeps watermarks, obeys control messages, keeps the rows of its windows in a store and reports what it did. It
does no I/O and reads no clock: the store, the cache of engines and the clock are the host's. On Spark a shard is
opened, stepped once and closed in every micro-batch; the local host has one shard, without a store, for a whole run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from braid.adapt.observation import Observation
from braid.engine.engine import Engine
from braid.engine.keys.hashing import FULL_HASH
from braid.engine.segment import Segment
from braid.errors import BraidError
from braid.model.plan import Plan, Written
from braid.model.query import Query
from braid.model.window import FOREVER
from braid.planning.lowering.one_site import lower
from braid.runtime.engine_cache import EngineCache
from braid.runtime.manifest import Manifest
from braid.runtime.messages import ChangePlan, PassIdle, in_order, parse_message
from braid.runtime.observing import Watch
from braid.runtime.query_spec import QuerySpec, difference
from braid.runtime.report import Seconds, ShardReport, StateSize, StreamProgress
from braid.runtime.retention import Retention
from braid.runtime.segment_log import read_manifest, write_manifest
from braid.runtime.store import Store
from braid.runtime.watermarks import Watermarks

Clock = Callable[[], float]


@dataclass(frozen=True)
class ShardSettings:
    """How a shard runs its query.

    `event_time`, `strategy` and `hash_bits` are the engine's. `fingerprint` is what must not change between runs on
    one store. `origins` maps the names that segments have to those of the streams they were cut from, which messages
    use; a stream that is not in it has one name. The host tells the watermarks of the streams in `announced`. With
    `observes` False, nothing is sampled for the controller.
    """

    event_time: str | None = None
    strategy: str = "jisc"
    hash_bits: int = FULL_HASH
    fingerprint: Mapping[str, Any] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)
    announced: frozenset[str] = frozenset()
    observes: bool = True

    @classmethod
    def of(cls, spec: QuerySpec) -> ShardSettings:
        """The settings of every shard of a query."""
        origins = {source.alias: source.declared.name for source in spec.query.inputs}
        return cls(
            event_time=spec.event_time,
            fingerprint=spec.fingerprint(),
            origins=origins,
            announced=frozenset(stream for stream, origin in origins.items() if origin in spec.watermarked),
        )


class Shard:
    """One of the parts that the work of a query is split into, opened where its last committed step left it.

    Without a store nothing outlives the shard; without a cache the engine is rebuilt from the store.
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
        self._watermarks = Watermarks(query, self._manifest.newest, self._manifest.watermarks, settings.announced)
        self._retention = None if store is None else Retention(query, store, self._manifest, self._watermarks)
        self.rejections: list[str] = []
        """Why control messages of the last step were rejected."""
        self._told: dict[str, int] = {}
        """The watermarks that the engine knows of."""
        self._engine_origin = ""
        self.engine = self._open()

    @classmethod
    def of(cls, spec: QuerySpec, store: Store, engines: EngineCache | None, clock: Clock) -> Shard:
        """A shard of a query that is split into several."""
        return cls(spec.narrow, spec.plan, ShardSettings.of(spec), store, engines, clock)

    def change(self, plan: Plan) -> None:
        """Go on with another plan; the windows stay, and so does the result."""
        if plan != self.plan:
            self.engine.change(lower(plan))
            self.plan = plan
            self._manifest.plan = plan.written

    def step(
        self,
        segments: Iterable[Segment],
        messages: Iterable[bytes] = (),
        *,
        announced: Mapping[str, int] | None = None,
        announced_after: Mapping[str, int] | None = None,
    ) -> tuple[list[pa.RecordBatch], ShardReport]:
        """Take a batch: its results, and a report of it.

        Watermarks that the host announces hold for the rows of this batch, or only `announced_after` it.
        """
        self._manifest.step += 1
        self._watermarks.announce(announced or {})
        batch = [self._take(segment) for segment in segments]
        self._obey(messages)
        watch = Watch(self.engine)
        started = self._clock()
        results = self.engine.step(batch)
        results += self._progress(batch, announced_after or {})
        joined = self._clock()
        observation = watch.observe(batch) if self._settings.observes else Observation({})
        seconds = Seconds(join=joined - started, watch=self._clock() - joined)
        if self._retention is not None:
            self._retention.update(self.engine)
        return results, self._report(batch, watch, observation, seconds)

    def finish(self) -> list[pa.RecordBatch]:
        """No more rows will come: the results that were still waiting for that."""
        return self.engine.finish()

    def close(self) -> None:
        """Leave the engine to the cache and write down where the shard is; the host commits."""
        self._manifest.engine = "" if self._engines is None else self._engines.close(self.engine)
        if self._store is not None:
            write_manifest(self._store, self._manifest)

    def _read_manifest(self, plan: Plan | Written) -> Manifest:
        wanted = self._settings.fingerprint
        manifest = None if self._store is None else read_manifest(self._store)
        if manifest is None:
            return Manifest(wanted, Plan.of(self._query, plan).written)
        change = difference(manifest.fingerprint, json.loads(json.dumps(wanted))) if manifest.step else None
        if change is not None:
            raise BraidError(
                f"the checkpoint belongs to another query: {change}\n"
                "go on with what it was, or start on a new checkpoint and a new place for the results"
            )
        return manifest

    def _open(self) -> Engine:
        if self._engines is not None:
            found = self._engines.open(self._manifest.engine, self._query, self._build)
            if found is not None:
                engine, self._engine_origin = found
                return engine
        engine = self._build()
        self._engine_origin = "rebuilt" if self._manifest.step else "new"
        if self._retention is not None:
            self._retention.restore(engine)
        return engine

    def _build(self) -> Engine:
        settings = self._settings
        return Engine(
            lower(self.plan),
            event_time=settings.event_time,
            strategy=settings.strategy,
            hash_bits=settings.hash_bits,
        )

    def _take(self, segment: Segment) -> Segment:
        """A segment as the engine gets it, with the watermark that its rows are judged by."""
        self._watermarks.announce({segment.stream: segment.watermark})
        if self._retention is not None:
            self._retention.keep(segment)
        return replace(segment, watermark=self._watermarks.of(segment.stream))

    def _obey(self, messages: Iterable[bytes]) -> None:
        """What cannot be obeyed is rejected and counted, and the query goes on as it was."""
        self.rejections = []
        for payload in in_order(messages):
            try:
                message = parse_message(payload)
                match message:
                    case ChangePlan():
                        self.change(Plan.of(self._query, message.plan))
                    case PassIdle():
                        self._watermarks.pass_idle(self._by_segment_stream(message.reached))
            except (TypeError, RecursionError, BraidError) as problem:
                self._manifest.rejected += 1
                self.rejections.append(f"{problem}: {payload[:200]!r}")

    def _by_segment_stream(self, moments: Mapping[str, int]) -> dict[str, int]:
        """Event times by the name that a stream's segments have, from those by the name that messages use."""
        names = {source.declared.name for source in self._query.inputs}
        origins = {name: self._settings.origins.get(name, name) for name in names}
        return {name: moments[origin] for name, origin in origins.items() if origin in moments}

    def _progress(self, batch: Sequence[Segment], announced: Mapping[str, int]) -> list[pa.RecordBatch]:
        """Move watermarks on after a batch; returns results that were waiting for that."""
        self._told |= {segment.stream: segment.watermark for segment in batch}
        self._watermarks.advance(batch)
        self._watermarks.announce(announced)
        progress = self._watermarks.progress()
        reached = {segment.stream: segment.watermark for segment in progress}
        if reached == self._told:
            return []
        self._told = reached
        return self.engine.step(progress)

    def _report(
        self, batch: Sequence[Segment], watch: Watch, observation: Observation, seconds: Seconds
    ) -> ShardReport:
        entries = self._manifest.all_entries
        size = StateSize(sum(entry.rows for entry in entries), sum(entry.size for entry in entries), len(entries))
        heard = {segment.stream for segment in batch if segment.newest > -FOREVER}
        progress = {
            source.alias: StreamProgress(source.declared.name in heard, self._watermarks.of(source.declared.name))
            for source in self._query.inputs
        }
        return ShardReport(
            self._manifest.plan,
            observation,
            watch.joins(),
            progress,
            watch.emitted(),
            self.engine.counts().waiting,
            self._manifest.rejected,
            size,
            self._engine_origin,
            seconds,
        )
