"""The DataFrame of a query: pack rows into segments, shuffle them by shard, join them in one stateful operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import reduce
from pathlib import Path
from typing import Any

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StringType

from braid.hosts.spark.driver.checks import check_names, check_result
from braid.hosts.spark.driver.control import Control
from braid.hosts.spark.driver.expressions import braid_semantics, computed_column
from braid.hosts.spark.driver.names import by_position, named, quoted
from braid.hosts.spark.shared.packed_rows import CONTROL, PACKED_DDL
from braid.hosts.spark.worker.operator import STATISTICS, QueryOperator
from braid.hosts.spark.worker.packer import Packer
from braid.hosts.spark.worker.static_join import join_static
from braid.model.expressions.expression import columns_of
from braid.model.stream import Branch, Stream
from braid.model.window import LONGEST
from braid.runtime.query_spec import QuerySpec

Streams = Mapping[str, DataFrame]
"""The DataFrames of the declared streams, by name."""


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
    """The results of a streaming join. The listener finds the reports of the shards as an observation called `name`.

    `directory` is where the workers keep their cache. With `passes_idle`, control messages that pass idle streams move
    Spark's own watermarks too.
    """
    messages = control_messages(spark, control, spec.labels, spec.fingerprint)
    # A checkpoint knows sources by their position; messages are always the first.
    inputs = [messages]
    for stream in spec.streams:
        for number, branch in enumerate(stream.branches or [Branch(stream.name, stream.lateness)]):
            rows = _packed(spec, stream, number, streams[branch.name], name)
            if passes_idle:
                rows = rows.union(messages.withColumn("reached", _reached(branch)).filter("reached IS NOT NULL"))
            if branch.name not in spec.watermarked:
                rows = rows.withWatermark("reached", _spark_interval(branch.lateness))
            inputs.append(rows)
    results = from_arrow_schema(spec.result_schema)
    check_result(results)
    operator = QueryOperator(spec.to_json(), str(directory), cache_limit, name)
    joined = (
        reduce(DataFrame.union, (rows.select("shard", "source", "payload") for rows in inputs))
        .groupBy("shard")
        .transformWithStateInPandas(
            operator,
            by_position(results).add(STATISTICS, StringType()),
            "Append",
            # The shards need Spark's watermark only for streams that have one; otherwise Spark looks for timers in
            # vain, in every shard and micro-batch.
            "EventTime" if spec.watermarked else "None",
            eventTimeColumnName=quoted(str(results.names.index(spec.event_time))),
        )
    )
    observed = joined.observe(name, F.collect_list(STATISTICS).alias("reports"))
    return observed.filter(F.col(STATISTICS).isNull()).drop(STATISTICS).toDF(*results.names)


def static_join(spec: QuerySpec, streams: Streams) -> DataFrame:
    """The results of a join of DataFrames that are not streaming."""
    packed = reduce(
        DataFrame.union,
        [
            _packed(spec, stream, number, streams[branch.name], "")
            for stream in spec.streams
            for number, branch in enumerate(stream.branches or [Branch(stream.name, stream.lateness)])
        ],
    )
    results = from_arrow_schema(spec.result_schema)
    text = spec.to_json()
    joined = packed.groupBy("shard").applyInArrow(lambda table: join_static(text, table), by_position(results))
    return joined.toDF(*results.names)


def _packed(spec: QuerySpec, stream: Stream, branch: int, dataframe: DataFrame, name: str) -> DataFrame:
    """The rows of a stream, or of one of the streams that it unites, as segments, one row for each segment."""
    names = spec.columns_read(stream.name)
    computed = spec.computed_columns(stream.name)
    operands = [operand.name for expression in computed.values() for operand in columns_of(expression)]
    check_names(stream.name, dataframe, [*(name for name in names if name not in computed), *operands])
    columns = [computed_column(computed[name]) if name in computed else named(name) for name in names]
    # Columns are named by their position on the way, because PySpark does not support every name.
    with braid_semantics(dataframe.sparkSession) if computed else nullcontext():
        rows = dataframe.select(*(column.alias(str(position)) for position, column in enumerate(columns)))
    return rows.mapInArrow(Packer(spec.to_json(), stream.name, name, branch), PACKED_DDL)


def control_messages(
    spark: SparkSession, control: Control, labels: Sequence[int], fingerprint: Mapping[str, Any]
) -> DataFrame:
    """Every control message, copied to each shard."""
    return control.messages(spark, fingerprint).select(
        F.explode(F.array(*(F.lit(label).cast("int") for label in labels))).alias("shard"),
        F.lit(CONTROL).alias("source"),
        F.col("value").cast("binary").alias("payload"),
    )


def _reached(stream: Branch) -> SparkColumn:
    """The event time that a control message says a stream has reached; null if it does not name the stream."""
    reached = F.from_json(F.col("payload").cast("string"), "reached map<string, bigint>")["reached"]
    return F.timestamp_micros(reached[stream.name])


def _spark_interval(lateness: int) -> str:
    """The delay of Spark's watermark that makes it earlier than every result of rows that are in time.

    It is at least a millisecond longer than the lateness. Spark counts whole milliseconds and refuses results *at* its
    watermark, while the engine takes rows that are exactly at the watermark.
    """
    # Spark refuses longer intervals; all its timestamps are less than LONGEST apart.
    return f"{min(lateness, LONGEST) // 1_000 + 1} milliseconds"
