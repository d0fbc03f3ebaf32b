"""Runs a query on Braid and on Spark's own streaming, over the same files, and compares the results with DuckDB's."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

import braid
from benchmarks.nexmark.generator import LATENESS, Auctions, side_input
from benchmarks.nexmark.query import STREAMS, Query
from benchmarks.spark import PROVIDERS, check_equal

WARM_UP = 2
"""The first micro-batches of a run, which are not measured."""
CLOSING = "closing"
"""In the name of files whose rows only close windows."""


@dataclass(frozen=True)
class Input:
    """The streams in files, one file of each stream for a micro-batch, and the table of q13."""

    directory: Path

    @classmethod
    def write(cls, auctions: Auctions, directory: Path) -> Input:
        for name in STREAMS:
            (directory / name).mkdir(parents=True)
        batches = [(f"{number:05d}", batch) for number, batch in enumerate(auctions.batches())]
        batches += [(f"9{number:04d}_{CLOSING}", batch) for number, batch in enumerate(auctions.closing())]
        for file, batch in batches:
            for name, rows in batch.items():
                pq.write_table(pa.Table.from_batches([rows]), directory / name / f"{file}.parquet")
        pq.write_table(side_input(), directory / "side_input.parquet")
        return cls(directory)

    def stream(self, spark: SparkSession, name: str) -> DataFrame:
        directory = str(self.directory / name)
        reader = spark.readStream.schema(spark.read.parquet(directory).schema)
        # Files are read in the order of their names: they are written in this order, and Spark goes by their times.
        return reader.option("maxFilesPerTrigger", 1).parquet(directory)

    def side_input(self, spark: SparkSession) -> DataFrame:
        return spark.read.parquet(str(self.directory / "side_input.parquet"))

    def rows(self, streams: Sequence[str]) -> list[int]:
        """The rows of some streams in each micro-batch."""
        counts = [
            [pq.read_metadata(path).num_rows for path in sorted((self.directory / name).iterdir())] for name in streams
        ]
        return [sum(of_streams) for of_streams in zip(*counts, strict=True)]

    def total_rows(self, name: str) -> int:
        return sum(self.rows([name]))

    def expect(self, query: Query, target: Path) -> None:
        """Write what DuckDB answers."""
        connection = duckdb.connect()
        connection.execute("SET TimeZone = 'UTC'")
        for name in STREAMS:
            files = [str(path) for path in (self.directory / name).iterdir() if not query.waits or not _closes(path)]
            connection.execute(f"CREATE VIEW {name} AS FROM read_parquet({files})")
        connection.execute(f"CREATE VIEW side_input AS FROM '{self.directory / 'side_input.parquet'}'")
        connection.execute(f"COPY ({query.expected}) TO '{target}' (FORMAT parquet)")


def _closes(path: Path) -> bool:
    return CLOSING in path.name


@dataclass(frozen=True)
class Run:
    """The rows that each micro-batch of a run reads, of all its streams, and its seconds."""

    rows: list[int]
    seconds: list[float]

    @property
    def rate(self) -> float:
        """Rows per second of all micro-batches after the warm-up, those that only close windows among them."""
        return sum(self.rows[WARM_UP:]) / sum(self.seconds[WARM_UP:])

    @property
    def rates(self) -> list[float]:
        """Rows per second of each micro-batch that reads more than the rows that close windows."""
        return [rows / seconds for rows, seconds in zip(self.rows, self.seconds, strict=False) if rows > len(STREAMS)]


@dataclass(frozen=True)
class Outcome:
    """Braid's run, Spark's run or the reason why Spark refuses the query, and the number of results."""

    query: Query
    braid: Run
    spark: Run | str
    results: int


@dataclass(frozen=True)
class Contest:
    """A query with its input and what DuckDB answers, in a directory of its own."""

    query: Query
    files: Input
    spark: SparkSession
    directory: Path

    def warm_up(self) -> None:
        """Run the query once, so that Java has compiled what the next runs need."""
        self._drain(braid_results(self.query.text, self.files, self.spark), self.directory / "warm")

    def run_braid(self, adapt: bool = True) -> tuple[Run, int]:
        """A run, and the number of its results; an AssertionError if they are not DuckDB's."""
        target = self.directory / f"braid {adapt}"
        run = self._drain(braid_results(self.query.text, self.files, self.spark, adapt), target)
        return run, check_equal(target, self._expected)

    def run_spark(self) -> Run | str:
        """A run, or the reason why Spark refuses the query; an AssertionError if results are not DuckDB's."""
        target = self.directory / "spark"
        try:
            run = self._drain(spark_results(self.query.spark, self.files, self.spark), target)
        except AnalysisException as refusal:
            return _reason(refusal)
        check_equal(target, self._expected)
        return run

    @property
    def _expected(self) -> Path:
        path = self.directory / "expected.parquet"
        if not path.exists():
            self.files.expect(self.query, path)
        return path

    def _drain(self, result: DataFrame, target: Path) -> Run:
        return Run(self.files.rows(self.query.streams), drain(result, target))


def braid_results(text: str, files: Input, spark: SparkSession, adapt: bool = True) -> DataFrame:
    session = braid.Session(spark, adapt=adapt)
    for name in STREAMS:
        rate = files.total_rows(name)
        session.stream(name, files.stream(spark, name), time="dateTime", lateness=LATENESS, rate=rate)
    session.table("side_input", files.side_input(spark))
    register_functions(spark)
    return session.sql(text).dataframe.drop("event_time")


def spark_results(text: str, files: Input, spark: SparkSession) -> DataFrame:
    """A query of Spark's own streaming, with the state store that is faster in `benchmarks.spark`."""
    session = spark.newSession()
    for name, value in PROVIDERS["in memory"].items():
        session.conf.set(name, value)
    for name in STREAMS:
        files.stream(session, name).withWatermark("dateTime", LATENESS).createOrReplaceTempView(name)
    files.side_input(session).createOrReplaceTempView("side_input")
    register_functions(session)
    return session.sql(text)


def register_functions(spark: SparkSession) -> None:
    """The function of q14."""
    spark.udf.register("count_char", lambda text, letter: text.count(letter), "bigint")


def drain(result: DataFrame, target: Path) -> list[float]:
    """Run a streaming DataFrame to its end, into Parquet files; the seconds of its micro-batches."""
    with tempfile.TemporaryDirectory() as checkpoint:
        writer = result.writeStream.format("parquet").option("path", str(target))
        started = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        started.awaitTermination()
        return [progress.durationMs["triggerExecution"] / 1_000 for progress in started.recentProgress]


def _reason(refusal: AnalysisException) -> str:
    """The first sentence of what Spark says."""
    return str(refusal).split("\n")[0].split(";")[0].strip()
