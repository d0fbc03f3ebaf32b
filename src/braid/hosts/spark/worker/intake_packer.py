"""What an intake does with rows of its stream: drop those that are late or not wanted, and pack the rest."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache

import pyarrow as pa

from braid.engine.segment import Segment
from braid.hosts.spark.worker.packer import gather
from braid.hosts.spark.worker.task_overhead import reduce_task_overhead
from braid.runtime.sites.node import NodePacker, NodeShard
from braid.runtime.sites.site import outgoing_segments
from braid.runtime.sites.site_spec import SiteSpec

INTAKE_OUTPUT = pa.schema({"outlet": pa.int32(), "payload": pa.binary(), "report": pa.string()})
"""The columns of `SITE_OUTPUT_DDL` as Arrow types."""


class IntakePacker:
    """Packs the rows of one stream, as a function for `mapInArrow`: for each alias a segment, and a report.

    `spec` is the JSON of a `SiteSpec`, `columns` are the columns of the stream that are read. `watermarks` tells by
    fragment which rows are late; it is that of the micro-batch before, whatever rows of this one a task has got.
    """

    def __init__(self, spec: str, stream: str, columns: list[str], watermarks: Mapping[str, int]) -> None:
        self._spec = spec
        self._stream = stream
        self._columns = columns
        self._watermarks = watermarks

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = [batch.rename_columns(self._columns) for batch in gather(batches)]
        spec, packers = _packers_of(self._spec)
        for position, outlet in enumerate(spec.work.outlets):
            alias = outlet.fragment
            if rows and spec.stream_of(outlet).name == self._stream:
                started = time.perf_counter()
                node = spec.nodes[alias]
                shard = NodeShard(node, clock=time.perf_counter)
                segments = [segment for part in rows for _, segment in packers[alias].pack(part)]
                passed, report = shard.admit(segments, self._watermarks[alias])
                for segment in outgoing_segments(node, outlet, passed):
                    yield _row(position, segment, None)
                seconds = replace(report.seconds, total=time.perf_counter() - started)
                yield _row(position, None, replace(report, seconds=seconds).to_json())
        reduce_task_overhead()


@lru_cache(maxsize=16)
def _packers_of(text: str) -> tuple[SiteSpec, dict[str, NodePacker]]:
    spec = SiteSpec.from_json(text)
    return spec, {name: NodePacker(node, node.fragment.reads[0]) for name, node in spec.nodes.items()}


def _row(outlet: int, segment: Segment | None, report: str | None) -> pa.RecordBatch:
    payload = None if segment is None else segment.to_bytes()
    return pa.RecordBatch.from_pylist([{"outlet": outlet, "payload": payload, "report": report}], INTAKE_OUTPUT)
