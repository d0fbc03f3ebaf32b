"""Resharding: divides the state of a query among another number of shards.

Every row in a store goes to the shards that would have got it if the query had always had the new number of shards. So
the query goes on as if nothing had changed. If a row was copied to several old shards, only one of its copies is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import product

from braid.engine.engine import Engine
from braid.engine.segment import Segment
from braid.errors import BraidError
from braid.model.plan import Plan
from braid.model.query import Query
from braid.model.window import FOREVER
from braid.planning.lowering.one_site import lower
from braid.runtime.manifest import Manifest
from braid.runtime.packing import SourcePacker
from braid.runtime.query_spec import QuerySpec
from braid.runtime.retention import Retention, logged_streams, waiting_logs
from braid.runtime.segment_log import MANIFEST, SegmentLog, write_manifest
from braid.runtime.spread_table import SpreadTable
from braid.runtime.store import DictionaryStore, Key, Store
from braid.runtime.waiting_resharding import WaitingResharder
from braid.runtime.watermarks import Watermarks


class Resharder:
    """Divides the stored rows of the shards of `before` among the shards of `after`, which run the same query.

    `manifests` are those of the old shards, by shard. `table` has the keys that they spread; the new ones spread none.
    """

    def __init__(
        self,
        before: QuerySpec,
        after: QuerySpec,
        manifests: Mapping[int, Manifest],
        table: SpreadTable | None = None,
    ) -> None:
        if not manifests:
            raise BraidError("there is no shard to take rows from; run the query until it has taken a micro-batch")
        query = after.narrow
        self._router = before.router
        self._table = SpreadTable() if table is None else table
        self._after = after
        self._manifests = manifests
        self._packers = {source.declared.name: SourcePacker(query, after.router, source) for source in query.inputs}
        engine = _engine(query)
        self._waiting = WaitingResharder(query, engine, before.router, after.router, self._packers)
        self._logged = {**logged_streams(query), **waiting_logs(engine)}
        self._streams = {logged.number: stream for stream, logged in self._logged.items()}

    def manifest(self) -> Manifest:
        """The manifest of a new shard before it gets its rows."""
        manifests = self._manifests.values()
        # All shards take every batch, so they agree on everything but their own rows.
        latest = max(manifests, key=lambda manifest: manifest.step)
        return Manifest(
            self._after.fingerprint,
            latest.plan,
            latest.against,
            latest.expected,
            step=latest.step,
            newest=dict(latest.newest),
            watermarks=dict(latest.watermarks),
            needed_since=_least(manifest.needed_since for manifest in manifests),
            rejected=latest.rejected,
        )

    def cut(self, shard: int, key: Key, data: bytes) -> Iterator[tuple[int, Segment]]:
        """Divides one entry in the store of an old shard: pairs of a new shard and the segment that it gets."""
        if key == MANIFEST:
            return
        stream = self._streams[key[0]]
        if stream not in self._waiting and shard != self._copy_used(shard, stream):
            return
        manifest = self._manifests[shard]
        entry = next(entry for entry in manifest.entries[stream] if entry.number == key[1])
        rows = SegmentLog(DictionaryStore(), manifest, self._logged).needed_rows(stream, entry, data)
        if not rows.num_rows:
            return
        if stream in self._waiting:
            yield from self._waiting.cut(shard, stream, rows)
            return
        rows = self._packers[stream].at_home(rows, self._router, shard, self._table)
        for new_shard, segment in self._packers[stream].route(rows, entry.newest):
            if segment.rows.num_rows:
                yield new_shard, segment

    def _copy_used(self, shard: int, stream: str) -> int:
        """The old shard whose rows of a stream are used, of those that got the same rows as this one.

        After an outer join, rows come to the next join late, and later in some shards than in others. So the shards
        have forgotten different rows, and the one that has forgotten least has all that any of them needs.
        """
        own = self._router.coordinates(shard)
        dimensions = self._router.dimensions
        choices = [
            [coordinate] if stream in dimension.streams else range(dimension.share)
            for dimension, coordinate in zip(dimensions, own, strict=True)
        ]
        copies = (self._router.shard_at(coordinates) for coordinates in product(*choices))
        return min(copies, key=lambda copy: (self._manifests[copy].needed_since.get(stream, -FOREVER), copy))


def fill(store: Store, query: Query, manifest: Manifest, segments: Iterable[Segment]) -> None:
    """Write a new shard of a query (`QuerySpec.narrow`) to an empty store."""
    manifest = replace(manifest, entries={}, newest=dict(manifest.newest), watermarks=dict(manifest.watermarks))
    retention = Retention(query, store, manifest, Watermarks(query, manifest.newest, manifest.watermarks))
    retention.move_in(segments, _engine(query))
    write_manifest(store, manifest)


def _engine(query: Query) -> Engine:
    """An engine that knows the logs of a query, which do not depend on the plan."""
    return Engine(lower(Plan.of(query, None)))


def _least(times: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The least time of each stream; -FOREVER where a shard has none."""
    listed = list(times)
    streams = {stream for mapping in listed for stream in mapping}
    return {stream: min(mapping.get(stream, -FOREVER) for mapping in listed) for stream in streams}
