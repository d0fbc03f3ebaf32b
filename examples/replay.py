"""Helpers of the examples: replay a table as a stream, and collect the results of a query."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from braid.hosts.spark.driver.deployed_query import DeployedQuery
from braid.hosts.spark.driver.query import SparkQuery


def replay(spark: SparkSession, table: pa.Table, batches: int = 3) -> DataFrame:
    """A table as a stream of files, one per micro-batch. Your streams come from Kafka or another source of Spark."""
    directory = tempfile.mkdtemp(prefix="braid-example-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    rows = -(-table.num_rows // batches)
    for batch in range(batches):
        file = Path(directory, f"{batch}.parquet")
        pq.write_table(table.slice(batch * rows, rows), file)
        os.utime(file, (batch, batch))  # Spark reads the oldest file first.
    schema = spark.read.parquet(directory).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(directory)


def collect(query: SparkQuery | DeployedQuery) -> pa.Table:
    """Run a query to the end of its streams and return the results. Your results go to a table, a topic or files."""
    writer = query.dataframe.writeStream.format("memory").queryName(query.name).trigger(availableNow=True)
    writer.start().awaitTermination()
    return query.dataframe.sparkSession.table(query.name).drop("event_time").toArrow()
