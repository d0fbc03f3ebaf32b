"""A site of a network that this program runs: a Spark, and the streams that start there."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from braid.errors import StreamError
from braid.hosts.registry import Registry
from braid.hosts.spark.driver.checks import arrow_schema
from braid.hosts.spark.driver.local_spark import SETTINGS, local_spark, submitted_spark
from braid.hosts.spark.driver.spark_watermarks import watermark_of
from braid.model.duration import Duration, lateness_of
from braid.model.stream import Stream


class NetworkSite:
    """What `Network.site` returns."""

    def __init__(self, name: str, spark: SparkSession | None, log: str | Path | None, registry: Registry) -> None:
        self.name = name
        self.spark = spark or submitted_spark() or local_spark(log=log)
        for setting, value in SETTINGS.items():
            self.spark.conf.set(setting, value)
        self._registry = registry
        self.dataframes: dict[str, DataFrame] = {}
        """The streams that start here, by name."""

    def stream(self, name: str, dataframe: DataFrame, *, time: str = "ts", lateness: Duration = "0 seconds") -> None:
        """Declare a stream that starts here: a streaming DataFrame with an event-time column.

        `lateness` is how much older than the newest row before it a row may be.
        """
        if not isinstance(dataframe, DataFrame):
            raise StreamError(f"stream '{name}' is {type(dataframe).__name__}; give a Spark DataFrame")
        if not dataframe.isStreaming:
            raise StreamError(f"stream '{name}' is a table; read it as a stream: spark.readStream")
        if watermark_of(dataframe) is not None:
            raise StreamError(
                f"stream '{name}' has a watermark of Spark's, which other sites cannot follow; leave out "
                "withWatermark, and say with lateness=.. how late its rows may be"
            )
        declared = Stream(name, arrow_schema(name, dataframe.schema), time, lateness_of(name, lateness))
        self._registry.declare(self.name, declared)
        self.dataframes[name] = dataframe

    def __repr__(self) -> str:
        return f"site {self.name} with {', '.join(self.dataframes) or 'no streams'}"
