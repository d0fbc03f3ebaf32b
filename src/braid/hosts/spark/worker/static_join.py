"""Joins of DataFrames that are not streaming: a shard takes all its rows at once and needs no store."""

from __future__ import annotations

import pyarrow as pa

from braid.engine.segment import Segment
from braid.runtime.arrival import Arrival, steps
from braid.runtime.query_spec import QuerySpec
from braid.runtime.shard import Shard, ShardSettings


def join_static(spec_text: str, packed: pa.Table) -> pa.Table:
    """The results of a shard's segments. Columns are named by their position, because two may have the same name."""
    spec = QuerySpec.from_json(spec_text)
    rows: dict[str, list[pa.RecordBatch]] = {source.alias: [] for source in spec.narrow.inputs}
    for payload in packed.column("payload").to_pylist():
        segment = Segment.from_bytes(payload)
        rows[segment.stream].append(segment.rows)
    arrivals = []
    for source in spec.narrow.inputs:
        table = pa.Table.from_batches(rows[source.alias], source.declared.schema)
        arrivals.append(Arrival(source.alias, table, source.declared.time, "0 s"))
    shard = Shard(spec.narrow, spec.plan, ShardSettings(event_time=spec.event_time, sampling=0.0))
    results: list[pa.RecordBatch] = []
    for segments in steps(arrivals, None, [(source.alias, source.window) for source in spec.narrow.inputs]):
        results += shard.step(segments)[0]
    results += shard.finish()
    table = pa.Table.from_batches(results, shard.engine.schema)
    return table.rename_columns([str(position) for position in range(table.num_columns)])
