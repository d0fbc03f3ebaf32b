"""Channels as streaming DataFrames: references to batches, and the results of a deployment."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from braid.channels.channels import Channels
from braid.hosts.spark.driver.data_sources import register
from braid.hosts.spark.driver.names import by_position
from braid.hosts.spark.shared.channel_source import FORMAT, ChannelSource
from braid.hosts.spark.shared.results_source import FORMAT as RESULTS
from braid.hosts.spark.shared.results_source import ResultsSource
from braid.hosts.spark.worker.results import ResultReader

WATERMARK_KEY = "spark.watermarkDelayMs"
"""How Spark marks the column that a watermark holds for."""


def read_channels(
    spark: SparkSession, channels: Channels, names: Sequence[str], subscriber: str, most_bytes: int
) -> DataFrame:
    """References to the batches of some channels, with the columns of `CHANNEL_DDL`."""
    register(spark, ChannelSource)
    options = {
        "channels": json.dumps(channels.to_json()),
        "read": json.dumps(list(names)),
        "subscriber": subscriber,
        "most_bytes": str(most_bytes),
    }
    return spark.readStream.format(FORMAT).options(**options).load()


def read_results(
    spark: SparkSession,
    channels: Channels,
    query: str,
    subscriber: str,
    schema: pa.Schema,
    most_bytes: int,
) -> DataFrame:
    """The results of a query; the event time is the last column of `schema`.

    The watermark of the DataFrame is that of the channels, so it is right whatever the order of results. Spark marks
    only the column that it computes a watermark from. So the event-time column gets the same mark here.
    """
    register(spark, ResultsSource)
    options = {
        "channels": json.dumps(channels.to_json()),
        "query": query,
        "subscriber": subscriber,
        "most_bytes": str(most_bytes),
    }
    entries = spark.readStream.format(RESULTS).options(**options).load()
    # Spark takes a row exactly at its watermark for late, and counts whole milliseconds.
    timed = entries.withColumn("reached", F.timestamp_micros("reached")).withWatermark("reached", "1 millisecond")
    fields = from_arrow_schema(schema).fields
    rows = timed.mapInArrow(ResultReader(channels.to_json(), schema.names[-1]), by_position(StructType(fields)))
    columns = [F.col(str(position)).alias(field.name) for position, field in enumerate(fields)]
    columns[-1] = F.col(str(len(fields) - 1)).alias(fields[-1].name, metadata={WATERMARK_KEY: 1})
    return rows.select(*columns)
