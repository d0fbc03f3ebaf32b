"""What the operator does in a worker, for one shard: rows of Spark in, rows of Spark out."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from braid.engine.segment import Segment, no_rows
from braid.hosts.spark.shared.cache_space import CACHE, CacheSpace, make_private
from braid.hosts.spark.shared.packed_rows import CONTROL
from braid.hosts.spark.worker.array_cache import ArrayCache
from braid.hosts.spark.worker.engine_cache import WorkerEngineCache
from braid.hosts.spark.worker.spark_store import MapState, SparkStore
from braid.model.expressions.types import is_list
from braid.runtime.query_spec import QuerySpec
from braid.runtime.report import ShardReport
from braid.runtime.shard import Shard

logger = logging.getLogger(__name__)


class Task:
    """One shard in one micro-batch, built from what Spark ships to a worker: text, a directory and a size."""

    def __init__(self, spec: str, directory: str, cache_limit: int | None, state: MapState) -> None:
        place = Path(directory)
        self._spec = QuerySpec.from_json(spec)
        self._store = SparkStore(state)
        with suppress(OSError):  # Then there is no cache.
            make_private(place.parent)
        arrays = ArrayCache(place / CACHE, CacheSpace(place.parents[1], cache_limit))
        self._engines = WorkerEngineCache(arrays)

    def take(self, label: int, rows: Iterable[pd.DataFrame], watermark: int) -> Iterator[pd.DataFrame]:
        """The results of a shard's segments and messages, and a report; the watermark is Spark's, in milliseconds."""
        packed = [
            (int(source), bytes(payload))
            for frame in rows
            for source, payload in zip(frame["source"], frame["payload"], strict=True)
        ]
        results, report = self.run(packed, watermark)
        yield from (_frame(batch, None) for batch in results)
        yield _frame(no_rows(self._spec.result_schema), replace(report, shard=label).to_json())

    def run(self, packed: Iterable[tuple[int, bytes]], watermark: int) -> tuple[list[pa.RecordBatch], ShardReport]:
        """Open the shard, step it and close it; what it must remember goes to the state store."""
        started = time.perf_counter()
        shard = Shard.of(self._spec, self._store, self._engines, time.perf_counter)
        segments: list[Segment] = []
        messages: list[bytes] = []
        for source, payload in packed:
            if source == CONTROL:
                messages.append(payload)
            else:
                segments.append(Segment.from_bytes(payload))
        before, after = self._announced(watermark)
        results, report = shard.step(segments, messages, announced=before, announced_after=after)
        for rejection in shard.rejections:
            logger.warning("control message rejected: %s", rejection)
        shard.close()
        seconds = replace(report.seconds, store=self._store.seconds, total=time.perf_counter() - started)
        return results, replace(report, seconds=seconds)

    def _announced(self, watermark: int) -> tuple[dict[str, int], dict[str, int]]:
        """The watermarks that Spark tells of streams, before the batch and after it.

        To Spark a row is late if it is at the watermark, so that the first row in time is a microsecond later. What a
        stateful operator of Spark puts out may be as old as Spark's watermark was in the batch before: it is in time
        for this batch, and the watermark holds only after it.
        """
        before: dict[str, int] = {}
        after: dict[str, int] = {}
        if watermark <= 0:  # Spark has none yet.
            return before, after
        for source in self._spec.query.inputs:
            name = source.declared.name
            if name in self._spec.watermarked:
                target = after if name in self._spec.derived else before
                target[source.alias] = 1_000 * watermark + 1
        return before, after


def _frame(batch: pa.RecordBatch, statistics: str | None) -> pd.DataFrame:
    """Rows as Spark takes them; the columns stay Arrow's, but for nested ones, which PySpark reads value by value."""
    if statistics is not None:
        batch = pa.RecordBatch.from_arrays([pa.nulls(1, field.type) for field in batch.schema], schema=batch.schema)
    reports = pa.nulls(batch.num_rows, pa.string()) if statistics is None else pa.array([statistics])
    return pd.DataFrame({place: _series(column) for place, column in enumerate([*batch.columns, reports])})


def _series(column: pa.Array) -> pd.Series:
    if not pa.types.is_nested(column.type):
        return pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([column])))
    values = column.to_pylist()
    if _has_map(column.type):
        values = [_with_maps(value, column.type) for value in values]
    return pd.Series(values, dtype=object)


class Pairs(list[tuple[Any, Any]]):
    """A map as PySpark reads one: by its items. Its keys may be lists or structs, which no dictionary has for keys."""

    def items(self) -> Iterator[tuple[Any, Any]]:
        return iter(self)


def _has_map(kind: pa.DataType) -> bool:
    return pa.types.is_map(kind) or any(_has_map(kind.field(place).type) for place in range(kind.num_fields))


def _with_maps(value: Any, kind: pa.DataType) -> Any:
    """A value with pairs for the maps in it."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        return Pairs((_with_maps(key, kind.key_type), _with_maps(item, kind.item_type)) for key, item in value)
    if pa.types.is_struct(kind):
        return {field.name: _with_maps(value[field.name], field.type) for field in kind}
    if is_list(kind):
        return [_with_maps(part, kind.value_type) for part in value]
    return value
