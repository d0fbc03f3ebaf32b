"""The work of the join operator for one shard in one micro-batch: from rows of Spark to rows of Spark."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pandas as pd
import pyarrow as pa

from braid.engine.segment import Segment
from braid.hosts.spark.shared.packed_rows import CONTROL
from braid.hosts.spark.shared.spread_property import spread_table
from braid.hosts.spark.worker.engine_cache import open_engine_cache
from braid.hosts.spark.worker.spark_store import MapState, SparkStore
from braid.model.expressions.types import is_list
from braid.runtime.query_spec import QuerySpec
from braid.runtime.report import ShardReport
from braid.runtime.shard import Shard

logger = logging.getLogger(__name__)


class Task:
    """One shard in one micro-batch.

    `spec` is the JSON of a `QuerySpec`, `directory` the query's directory on this host, `state` its map state in Spark.
    """

    def __init__(self, spec: str, directory: str, cache_limit: int | None, state: MapState, name: str = "") -> None:
        self._name = name
        self._spec = QuerySpec.from_json(spec)
        self._store = SparkStore(state)
        self._engines = open_engine_cache(directory, cache_limit)

    def take(self, label: int, rows: Iterable[pd.DataFrame], watermark: int) -> Iterator[pd.DataFrame]:
        """The results of the shard called `label`, and its report in a last row.

        `rows` are packed segments and messages; `watermark` is Spark's, in milliseconds.
        """
        packed: list[tuple[int, bytes]] = []
        for frame in rows:
            packed += zip(map(int, frame["source"]), map(bytes, frame["payload"]), strict=True)
        results, report = self._run(packed, watermark)
        yield from map(_result_frame, results)
        yield _report_frame(self._spec.result_schema, replace(report, shard=label).to_json())

    def _run(self, packed: list[tuple[int, bytes]], watermark: int) -> tuple[list[pa.RecordBatch], ShardReport]:
        """Open the shard, step it once and close it; `packed` are source numbers and payloads."""
        started = time.perf_counter()
        shard = Shard.of(self._spec, self._store, self._engines, time.perf_counter)
        segments = [Segment.from_bytes(payload) for source, payload in packed if source != CONTROL]
        messages = [payload for source, payload in packed if source == CONTROL]
        before, after = self._announced(watermark)
        results, report = shard.step(
            segments,
            messages,
            announced=before,
            announced_after=after,
            routed_by=spread_table(self._name).version,
        )
        for rejection in shard.rejections:
            logger.warning("control message rejected: %s", rejection)
        shard.close()
        seconds = replace(report.seconds, store=self._store.seconds, total=time.perf_counter() - started)
        return results, replace(report, seconds=seconds)

    def _announced(self, watermark: int) -> tuple[dict[str, int], dict[str, int]]:
        """The watermarks of streams that have one of Spark's: those that hold for this batch, and those after it.

        For Spark a row exactly at the watermark is late, so the first row in time is a microsecond later. Rows from a
        stateful operator of Spark's may be as old as the watermark of the batch before. They are in time, so for such
        streams the watermark holds only after this batch.
        """
        before: dict[str, int] = {}
        after: dict[str, int] = {}
        if watermark <= 0:  # Spark has no watermark yet.
            return before, after
        for source in self._spec.query.inputs:
            name = source.declared.name
            if name in self._spec.watermarked:
                target = after if name in self._spec.derived else before
                target[source.alias] = 1_000 * watermark + 1
        return before, after


def _result_frame(batch: pa.RecordBatch) -> pd.DataFrame:
    """Results as rows of the operator's output: the last column, for reports, is null."""
    return _frame([*batch.columns, pa.nulls(batch.num_rows, pa.string())])


def _report_frame(schema: pa.Schema, report: str) -> pd.DataFrame:
    """A report as one row of the operator's output: all columns but the last are null."""
    return _frame([*(pa.nulls(1, field.type) for field in schema), pa.array([report])])


def _frame(columns: list[pa.Array]) -> pd.DataFrame:
    return pd.DataFrame({position: _series(column) for position, column in enumerate(columns)})


def _series(column: pa.Array) -> pd.Series:
    """A column as PySpark takes it: still Arrow, except that nested values must be Python objects."""
    if not pa.types.is_nested(column.type):
        return pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([column])))
    values = column.to_pylist()
    if _has_map(column.type):
        values = [_with_maps(value, column.type) for value in values]
    return pd.Series(values, dtype=object)


class Pairs(list[tuple[Any, Any]]):
    """A map for PySpark, which only calls `items`. A dictionary will not do: keys may be lists or structs."""

    def items(self) -> Iterator[tuple[Any, Any]]:
        return iter(self)


def _has_map(kind: pa.DataType) -> bool:
    return pa.types.is_map(kind) or any(_has_map(kind.field(index).type) for index in range(kind.num_fields))


def _with_maps(value: Any, kind: pa.DataType) -> Any:
    """A value in which each map is a `Pairs`."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        return Pairs((_with_maps(key, kind.key_type), _with_maps(item, kind.item_type)) for key, item in value)
    if pa.types.is_struct(kind):
        return {field.name: _with_maps(value[field.name], field.type) for field in kind}
    if is_list(kind):
        return [_with_maps(element, kind.value_type) for element in value]
    return value
