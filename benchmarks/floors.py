"""How fast Spark moves the rows of a join if nothing is joined: the floors of every join on Spark.

- "stateful, in Python": read, serialized, shuffled, given to a stateful operator in Python that keeps nothing,
  and written. Braid's micro-batches have this shape.
- "in Python": read, passed through Python and written.
- "in Spark alone": read and written.

Each writes a row for every row of the streams in `written`, with as many columns as the join has.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import reduce
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from braid.hosts.spark.worker.task_overhead import reduce_task_overhead

SHARDS = 2
PACKED = pa.schema({"shard": pa.int32(), "payload": pa.binary()})
STATEFUL = "stateful, in Python"
NUMBER = "number"
"""The only column that is moved and written, several times."""

Streams = Mapping[str, DataFrame]


def floors(streams: Streams, written: Collection[str], columns: int) -> dict[str, DataFrame]:
    """The rows of the streams, moved in each of the ways; `written` names the streams whose rows are written."""
    # Workers do not import this module: it may be nowhere on their path.
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    numbers = {name: stream.select(F.col(stream.columns[1]).alias(NUMBER)) for name, stream in streams.items()}
    output = ", ".join(f"c{position} long" for position in range(columns))
    packing = "shard int, payload binary"
    packed = [stream.mapInArrow(_Pack(name in written), packing) for name, stream in numbers.items()]
    stateful = _union(packed).groupBy("shard").transformWithStateInPandas(_Empty(columns), output, "Append", "None")
    carried = [stream.mapInArrow(_Carry(name in written, columns), output) for name, stream in numbers.items()]
    alone = [
        # No number is that small, but Spark does not know it: it would not even read a stream without output.
        stream.filter(F.lit(name in written) | (F.col(NUMBER) < -(2**62))).select(
            *(F.col(NUMBER).alias(f"c{position}") for position in range(columns))
        )
        for name, stream in numbers.items()
    ]
    return {STATEFUL: stateful, "in Python": _union(carried), "in Spark alone": _union(alone)}


def _union(frames: list[DataFrame]) -> DataFrame:
    return reduce(DataFrame.union, frames)


class _Pack:
    """Serializes the rows of a task, a part for each shard."""

    def __init__(self, is_written: bool) -> None:
        self._is_written = is_written

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        table = pa.Table.from_batches(list(batches), pa.schema({NUMBER: pa.int64()}))
        share = -(-table.num_rows // SHARDS)
        for shard in range(SHARDS):
            part = table.slice(shard * share, share).combine_chunks()
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, part.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as stream:
                stream.write_table(part if self._is_written else part.slice(0, 0))
            yield pa.RecordBatch.from_pylist([{"shard": shard, "payload": sink.getvalue().to_pybytes()}], PACKED)
        reduce_task_overhead()


class _Carry:
    """Passes rows on, or leaves them out."""

    def __init__(self, is_written: bool, columns: int) -> None:
        self._is_written = is_written
        self._columns = columns

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if self._is_written:
                names = [f"c{position}" for position in range(self._columns)]
                yield pa.RecordBatch.from_arrays([batch.column(0)] * self._columns, names)
        reduce_task_overhead()


class _Empty(StatefulProcessor):
    """Gives the rows that come and keeps no state."""

    def __init__(self, columns: int) -> None:
        self._columns = columns

    def init(self, handle: StatefulProcessorHandle) -> None:
        pass

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        for frame in rows:
            for payload in frame["payload"]:
                column = pa.ipc.open_stream(bytes(payload)).read_all().column(NUMBER)
                if len(column):
                    values = pd.Series(pd.arrays.ArrowExtensionArray(column))
                    yield pd.DataFrame({f"c{position}": values for position in range(self._columns)})

    def close(self) -> None:
        reduce_task_overhead()
