"""The stateful operator: in every micro-batch, each bucket takes its segments and gives its results."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from braid.engine.segment import no_rows
from braid.hosts.spark.bucket import Bucket
from braid.hosts.spark.cache import Cache
from braid.hosts.spark.job import Job
from braid.hosts.spark.memory import KEY_DDL, STATE, VALUE_DDL, Memory
from braid.hosts.spark.room import CACHE, Room
from braid.hosts.spark.worker import lighten

STATISTICS = "_statistics"
"""A column of the operator's output that is null but in the one row with which a bucket reports on a batch."""


class JoinOperator(StatefulProcessor):
    """Spark ships it to the workers as text (a job), a directory and a size; everything else is built there."""

    def __init__(self, job: str, directory: str, cache_limit: int | None) -> None:
        self._job_text = job
        self._directory = directory
        self._cache_limit = cache_limit

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._job = Job.from_json(self._job_text)
        self._memory = Memory(handle.getMapState(STATE, KEY_DDL, VALUE_DDL))
        directory = Path(self._directory)
        self._cache = Cache(directory / CACHE, Room(directory.parents[1], self._cache_limit))

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        bucket = Bucket(self._job, self._memory, self._cache, timerValues.getCurrentProcessingTimeInMs())
        packed = [
            (int(source), bytes(payload))
            for frame in rows
            for source, payload in zip(frame["source"], frame["payload"], strict=True)
        ]
        results = bucket.take(packed)
        yield from (_frame(batch, None) for batch in results)
        yield _frame(no_rows(bucket.site.schema), json.dumps({"bucket": int(key[0]), **bucket.measured}))

    def close(self) -> None:
        lighten()


def _frame(batch: pa.RecordBatch, statistics: str | None) -> pd.DataFrame:
    """Rows as Spark takes them; the columns stay Arrow's, but for nested ones, which PySpark reads value by value."""
    if statistics is not None:
        batch = pa.RecordBatch.from_arrays([pa.nulls(1, field.type) for field in batch.schema], schema=batch.schema)
    reports = pa.nulls(batch.num_rows, pa.string()) if statistics is None else pa.array([statistics])
    return pd.DataFrame({place: _series(column) for place, column in enumerate([*batch.columns, reports])})


def _series(column: pa.Array) -> pd.Series:
    if pa.types.is_nested(column.type):
        return pd.Series(column.to_pylist(maps_as_pydicts="strict"), dtype=object)
    return pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([column])))
