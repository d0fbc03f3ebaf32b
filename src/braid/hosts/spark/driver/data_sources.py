"""Data sources in Python, made known to Spark."""

from __future__ import annotations

from threading import Lock

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource

_LOCK = Lock()


def register(spark: SparkSession, source: type[DataSource]) -> None:
    """Make a data source known to Spark, in place of an earlier one of this name; not from two threads at once."""
    with _LOCK:
        spark.dataSource.register(source)
