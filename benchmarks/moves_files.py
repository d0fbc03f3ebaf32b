"""Streams in files that come one second of event time after the other, and results in files."""

from __future__ import annotations

import os
import time
from pathlib import Path

import duckdb
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from braid.hosts.spark.driver.deployed_query import DeployedQuery


class Arrival:
    """Files of streams: those in `all` come to `streams` one second of event time after the other."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._started = int(time.time())
        self.second = 0
        for stream in (place / "all").iterdir():
            (place / "streams" / stream.name).mkdir(parents=True)

    def until(self, second: int) -> None:
        for stream in (self._place / "all").iterdir():
            for number, file in enumerate(sorted(stream.iterdir())[self.second : second], self.second):
                # Spark reads files in the order of their modification times.
                os.utime(file, (self._started + number, self._started + number))
                (self._place / "streams" / stream.name / file.name).hardlink_to(file)
        self.second = second

    def read(self, spark: SparkSession, stream: str, most_files: int) -> DataFrame:
        """A stream, of which a micro-batch takes the rows of at most so many seconds."""
        schema = spark.read.parquet(str(self._place / "all" / stream)).schema
        source = spark.readStream.schema(schema).option("maxFilesPerTrigger", most_files)
        return source.parquet(str(self._place / "streams" / stream))


def write_results(query: DeployedQuery, place: Path) -> StreamingQuery:
    writer = query.dataframe.writeStream.format("parquet").option("path", str(place / "results"))
    return writer.option("checkpointLocation", str(place / "checkpoint")).start()


def check_results(offline: str, streams: list[str], columns: list[str], place: Path) -> None:
    """The results are those of DuckDB over the files that have arrived."""
    connection = duckdb.connect()
    for stream in streams:
        connection.execute(f"CREATE VIEW {stream} AS SELECT * FROM '{place}/streams/{stream}/*.parquet'")
    summary = f"SELECT count(*), sum(hash({', '.join(columns)})) FROM"
    expected = connection.execute(f"{summary} ({offline})").fetchone()
    actual = connection.execute(f"{summary} '{place}/results/*.parquet'").fetchone()
    if actual != expected:
        raise SystemExit(f"the results are {actual}, not {expected}")
