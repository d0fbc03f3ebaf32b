"""What the examples have in common: tables replayed as streams, and results collected."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from braid.hosts.spark.driver.query import SparkQuery


def replay(spark: SparkSession, table: pa.Table, parts: int = 3) -> DataFrame:
    """A stream of files, one in each micro-batch. Yours will come from Kafka, or from wherever Spark reads streams."""
    directory = tempfile.mkdtemp(prefix="braid-example-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    rows = -(-table.num_rows // parts)
    for number in range(parts):
        file = Path(directory, f"{number}.parquet")
        pq.write_table(table.slice(number * rows, rows), file)
        os.utime(file, (number, number))  # Spark takes the oldest first.
    schema = spark.read.parquet(directory).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(directory)


def collect(query: SparkQuery) -> pa.Table:
    """Run until the streams end, and take the results into memory. Yours will go to a table, a topic or files."""
    writer = query.dataframe.writeStream.format("memory").queryName(query.name).trigger(availableNow=True)
    writer.start().awaitTermination()
    return query.dataframe.sparkSession.table(query.name).drop("event_time").toArrow()
