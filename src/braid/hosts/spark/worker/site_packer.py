"""What a site does before its shuffle: pack rows of channels for the shards that take them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import pyarrow as pa

from braid.channels.channel import Channel
from braid.channels.kinds import channels_of
from braid.hosts.spark.shared.packed_rows import WATERMARKS
from braid.hosts.spark.worker.task_overhead import reduce_task_overhead
from braid.runtime.sites.node import NodePacker
from braid.runtime.sites.site_spec import SiteSpec

SITE_PACKED = pa.schema({"shard": pa.int32(), "source": pa.int32(), "payload": pa.binary()})
"""The columns of `SITE_PACKED_DDL` as Arrow types."""


class StreamPackers:
    """Packs the rows of streams, by the names that fragments know them by, for every fragment that reads them."""

    def __init__(self, spec: SiteSpec) -> None:
        self._labels = spec.label_of
        self._packers: dict[str, list[tuple[str, int, NodePacker]]] = {}
        for name, node in spec.nodes.items():
            for source, stream in enumerate(node.fragment.reads):
                self._packers.setdefault(stream, []).append((name, source, NodePacker(node, stream)))

    def pack(self, stream: str, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """One row for each shard: the payloads of all shards together may be more than an Arrow array holds."""
        for node, source, packer in self._packers.get(stream, ()):
            for shard, segment in packer.pack(rows):
                yield _packed(self._labels[node, shard], source, segment.to_bytes())


class ChannelPacker:
    """Reads the batches that rows of the channel source refer to and packs them, as a function for `mapInArrow`.

    `spec` is the JSON of a `SiteSpec`, `location` says where the channels are.
    """

    def __init__(self, spec: str, location: Mapping[str, Any]) -> None:
        self._spec = spec
        self._location = json.dumps(location)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spec = SiteSpec.from_json(self._spec)
        packers = _packers_of(self._spec)
        for entry in (entry for batch in batches for entry in batch.to_pylist()):
            if entry["watermarks"] is not None:
                for label in spec.labels:
                    yield _packed(label, WATERMARKS, entry["watermarks"].encode())
                continue
            for segment in open_channel(self._location, entry["channel"]).read(entry["number"]).segments:
                for stream in spec.work.arriving[entry["channel"]]:
                    yield from packers.pack(stream, segment.rows)
        reduce_task_overhead()


@lru_cache(maxsize=16)
def _packers_of(spec: str) -> StreamPackers:
    return StreamPackers(SiteSpec.from_json(spec))


@lru_cache(maxsize=256)
def open_channel(location: str, name: str) -> Channel:
    """A channel; a worker process opens it once."""
    return channels_of(json.loads(location)).open(name)


def _packed(label: int, source: int, payload: bytes) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"shard": label, "source": source, "payload": payload}], SITE_PACKED)
