"""What the operator does in a worker, for one bucket: rows of Spark in, rows of Spark out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from braid.engine.segment import no_rows
from braid.hosts.spark.bucket import Bucket
from braid.hosts.spark.cache import Cache
from braid.hosts.spark.job import Job
from braid.hosts.spark.memory import Memory, Store
from braid.hosts.spark.room import CACHE, Room, make_private
from braid.model.types import is_list


class Task:
    """The parts that the text of a job, a directory and a size stand for."""

    def __init__(self, job: str, directory: str, cache_limit: int | None, store: Store) -> None:
        place = Path(directory)
        self._job = Job.from_json(job)
        self._memory = Memory(store)
        with suppress(OSError):  # Then there is no cache.
            make_private(place.parent)
        self._cache = Cache(place / CACHE, Room(place.parents[1], cache_limit))

    def take(self, label: int, rows: Iterable[pd.DataFrame], watermark: int) -> Iterator[pd.DataFrame]:
        """The results of a bucket's segments and messages, and a report; the watermark is Spark's, in milliseconds."""
        bucket = Bucket(self._job, self._memory, self._cache, watermark)
        packed = [
            (int(source), bytes(payload))
            for frame in rows
            for source, payload in zip(frame["source"], frame["payload"], strict=True)
        ]
        yield from (_frame(batch, None) for batch in bucket.take(packed))
        yield _frame(no_rows(bucket.site.schema), json.dumps({"bucket": label, **bucket.measured}))


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
