"""The DataFrame of a query: pack rows into segments, shuffle them by shard, join them in one stateful operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StringType, StructField, StructType

from braid.hosts.spark.driver.checks import check_names, check_result
from braid.hosts.spark.driver.control import Control
from braid.hosts.spark.driver.grouping import named
from braid.hosts.spark.shared.packed_rows import CONTROL, PACKED_DDL
from braid.hosts.spark.worker.operator import STATISTICS, JoinOperator
from braid.hosts.spark.worker.packer import Packer
from braid.hosts.spark.worker.whole import run_whole
from braid.model.stream import Stream
from braid.model.window import LONGEST
from braid.runtime.query_spec import QuerySpec

Streams = Mapping[str, DataFrame]


def streaming_join(
    spark: SparkSession,
    name: str,
    spec: QuerySpec,
    streams: Streams,
    control: Control,
    *,
    directory: Path,
    cache_limit: int | None,
    passes_idle: bool,
) -> DataFrame:
    """The results of a join as they come, with reports of the shards observed under `name`.

    `directory` is for what the workers cache. With `passes_idle`, control messages move Spark's own watermarks too.
    """
    messages = _messages(spark, control, spec.labels)
    # A checkpoint knows sources by their position, so that messages come first, whatever else reads them.
    parts = [messages]
    for stream in spec.streams:
        rows = _packed(spec, stream, streams)
        if passes_idle:
            rows = rows.union(messages.withColumn("reached", _reached(stream)).filter("reached IS NOT NULL"))
        if stream.name not in spec.watermarked:
            rows = rows.withWatermark("reached", _spark_interval(stream.lateness))
        parts.append(rows)
    schema = _operator_schema(spec)
    check_result(schema)
    operator = JoinOperator(spec.to_json(), str(directory), cache_limit)
    joined = (
        reduce(DataFrame.union, (part.select("shard", "source", "payload") for part in parts))
        .groupBy("shard")
        .transformWithStateInPandas(operator, schema, "Append", "EventTime", eventTimeColumnName=spec.event_time)
    )
    report = schema.names[-1]
    observed = joined.observe(name, F.collect_list(report).alias("reports"))
    return observed.filter(F.col(report).isNull()).drop(report)


def static_join(spec: QuerySpec, streams: Streams) -> DataFrame:
    """The results of a join of tables that are no streams."""
    packed = reduce(DataFrame.union, [_packed(spec, stream, streams) for stream in spec.streams])
    fields = _operator_schema(spec).fields[:-1]
    text = spec.to_json()
    # Columns travel by position, because two may have the same name.
    positions = StructType([StructField(str(position), field.dataType) for position, field in enumerate(fields)])
    joined = packed.groupBy("shard").applyInArrow(lambda table: run_whole(text, table), positions)
    return joined.toDF(*(field.name for field in fields))


def _packed(spec: QuerySpec, stream: Stream, streams: Streams) -> DataFrame:
    dataframe, read = streams[stream.name], spec.columns_read(stream.name)
    check_names(stream.name, dataframe, read)
    # Columns travel by position: PySpark does not find every name that a column may have.
    columns = [named(name).alias(str(position)) for position, name in enumerate(read)]
    return dataframe.select(*columns).mapInArrow(Packer(spec.to_json(), stream.name), PACKED_DDL)


def _messages(spark: SparkSession, control: Control, labels: Sequence[int]) -> DataFrame:
    """Every control message, once for each shard."""
    return control.messages(spark).select(
        F.explode(F.array(*(F.lit(label).cast("int") for label in labels))).alias("shard"),
        F.lit(CONTROL).alias("source"),
        F.col("value").cast("binary").alias("payload"),
    )


def _operator_schema(spec: QuerySpec) -> StructType:
    """The columns of the results, and last the one in which shards report."""
    fields = from_arrow_schema(spec.result_schema)
    return StructType([*fields.fields]).add(free_name(STATISTICS, fields.names), StringType())


def free_name(wanted: str, taken: Sequence[str]) -> str:
    """A name that no column has, as Spark compares names."""
    while wanted in {name.lower() for name in taken}:
        wanted = f"_{wanted}"
    return wanted


def _reached(stream: Stream) -> SparkColumn:
    """How far a message says that a stream has come, if it does."""
    reached = F.from_json(F.col("payload").cast("string"), "reached map<string, bigint>")["reached"]
    return F.timestamp_micros(reached[stream.name])


def _spark_interval(lateness: int) -> str:
    """Spark's watermark is earlier than every result that is in time.

    It counts milliseconds, and forbids what is not later than itself, while the engine takes what is not earlier.
    """
    # No two timestamps of Spark are as far from each other as the longest window is long.
    return f"{min(lateness, LONGEST) // 1_000 + 1} milliseconds"
