"""Packing on Spark: where rows are read, before the shuffle, they become segments, one for each shard."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pyarrow as pa

from braid.hosts.spark.shared.spread_property import spread_table
from braid.hosts.spark.worker.task_overhead import reduce_task_overhead
from braid.model.window import FOREVER
from braid.runtime.packing import SourcePacker
from braid.runtime.query_spec import QuerySpec

PACKED = pa.schema(
    {"shard": pa.int32(), "source": pa.int32(), "payload": pa.binary(), "reached": pa.timestamp("us", "UTC")}
)
"""The columns of `PACKED_DDL` as Arrow types."""

MOST_BYTES = 256 << 20
"""A task packs the rows it has read whenever they are more bytes than this."""


class Packer:
    """Packs the rows of one stream for every source of the query that reads it, as a function for `mapInArrow`.

    `spec` is the JSON of a `QuerySpec`, `name` the name of the query, and `branch` says which of the streams that the
    stream unites the rows are of. Spark pickles this object for the
    workers, so it holds nothing larger.
    """

    def __init__(self, spec: str, stream: str, name: str, branch: int = 0) -> None:
        self._spec = spec
        self._stream = stream
        self._name = name
        self._branch = branch

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spec = QuerySpec.from_json(self._spec)
        sources = [
            (source_number, SourcePacker(spec.narrow, spec.router, source))
            for source_number, source in enumerate(spec.narrow.inputs)
            if spec.query.inputs[source_number].declared.name == self._stream
        ]
        names = spec.columns_read(self._stream)
        table = spread_table(self._name)
        for rows in gather(batches):
            rows = rows.rename_columns(names)
            for source_number, packer in sources:
                for shard, segment in packer.pack(rows, table):
                    # One row per batch: the payloads of all shards together may be more than an Arrow array holds.
                    packed = {
                        "shard": spec.labels[shard],
                        "source": source_number,
                        "payload": replace(segment, branch=self._branch).to_bytes(),
                        "reached": segment.newest if segment.newest > -FOREVER else None,
                    }
                    yield pa.RecordBatch.from_pylist([packed], PACKED)
        reduce_task_overhead()


def gather(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Few large batches instead of many small ones."""
    pending: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        pending.append(batch)
        size += batch.nbytes
        if size > MOST_BYTES:
            yield pa.concat_batches(pending)
            pending = []
            size = 0
    if pending:
        yield pa.concat_batches(pending)
