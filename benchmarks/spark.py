"""Braid on Spark, compared with Spark's own chain of stream-stream joins and with DuckDB joining all input offline.

Run by `make bench` or `python -m benchmarks.spark [words of workload names, or names of functions in EXTRAS]`. All read
the same Parquet files and write Parquet; their results are compared before a figure is shown. Rates are input rows per
second of whole micro-batches (`triggerExecution`) with full windows. Braid has run the query before in the same JVM,
because streams run for days. Spark's own joins are warm by the time their windows are full, and have the best known
settings for each state store.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from rich.console import Console

import braid
from benchmarks.cold import first_results
from benchmarks.floors import floors
from benchmarks.memory import PythonMemory
from benchmarks.spark_joins import of_nexmark, on_a_band, on_one_key, on_two_keys
from benchmarks.workload import NexmarkJoin, Workload, one_key, uniform, words, zipf
from braid.hosts.spark.driver.class_archive import ARCHIVE
from braid.hosts.spark.driver.local_spark import local_spark

RESULTS = Path(__file__).parent.parent / "docs" / "results" / "spark.md"
STATE = "org.apache.spark.sql.execution.streaming.state."
PROVIDERS = {
    "RocksDB": {
        "spark.sql.streaming.stateStore.providerClass": f"{STATE}RocksDBStateStoreProvider",
        "spark.sql.streaming.join.stateFormatVersion": "3",
        # Spark's default. Braid turns compression off, because its segments are already compressed.
        "spark.sql.streaming.stateStore.rocksdb.compression": "lz4",
    },
    "in memory": {
        "spark.sql.streaming.stateStore.providerClass": f"{STATE}HDFSBackedStateStoreProvider",
        "spark.sql.streaming.join.stateFormatVersion": "2",
    },
}
MEMORY = "14g"
"""The memory of the JVM. Spark's own joins keep their state there; with half of it they mostly collect garbage."""

NOTES = """
Rows per second of Braid and of Spark's own chained joins with each of its state stores; the outputs are equal. Braid's
figures are those of the second run of each batch size. All figures are medians of the micro-batches whose windows are
full. Spark's in-memory joins have 14 GB for their state and process the same input as Braid. On RocksDB that would take
hours, so they end with the first micro-batch that has full windows. The sink writes no dictionaries, for Braid and for
Spark. [A design note](../design/20261116_micro_batch.md) shows where a micro-batch of Braid spends its time and how
much of that can be saved."""
REFERENCE = "4 streams, one key, 10 s windows (R4)"
COLD_STARTS = 3
"""How often a cold start is measured."""

console = Console()


@dataclass(frozen=True)
class Contest:
    """A workload, and the same join as a chain of Spark's own joins."""

    workload: Workload | NexmarkJoin
    chain: Callable[[Any, dict[str, DataFrame]], DataFrame]
    steps: tuple[int, ...] = (1, 5)
    """The files of each stream in a micro-batch, one entry for each run."""

    def peer_files(self, step: int, provider: str) -> int:
        """How many files of each stream Spark's own joins get.

        The watermark of each join in a chain is one window behind that of the join before. So the state of the last
        join is full only after as many windows as there are streams: in memory, the chain gets the whole input. On
        RocksDB a micro-batch takes up to 90 seconds, so there is time for only one micro-batch with full windows.
        """
        return self.workload.count if provider == "in memory" else self.workload.window_batches + step


def contests() -> list[Contest]:
    """All contests have 200,000 rows in a file of each stream, and keys for about one result per row."""
    windows: dict[str, Any] = {"window_seconds": 5, "seconds": 20}
    thirds, halves, eighths = 200_000 // 3, 100_000, 25_000
    chain = {
        "a": {"x": uniform(5 * thirds)},
        "b": {"x": uniform(5 * thirds), "y": uniform(5 * thirds)},
        "c": {"y": uniform(5 * thirds)},
    }
    band = {"a": {"x": uniform(10 * halves)}, "b": {"x": uniform(10 * halves)}}
    skewed, condition = one_key(3, uniform(5 * thirds))
    skewed["s0"] = {"k": zipf(5 * thirds, 1.2)}
    return [
        Contest(Workload(REFERENCE, *one_key(4, uniform(500_000)), seconds=40), on_one_key),
        Contest(
            Workload("chain a(x) b(x, y) c(y), 5 s", chain, "a.x = b.x AND b.y = c.y", rows=thirds, **windows),
            on_two_keys,
        ),
        Contest(
            Workload("band join of 2 streams, 5 s", band, "a.x BETWEEN b.x - 1 AND b.x + 1", rows=halves, **windows),
            on_a_band,
        ),
        Contest(
            Workload("3 streams, one with a zipf 1.2 key, 5 s", skewed, condition, rows=thirds, **windows), on_one_key
        ),
        # DuckDB joins the whole input before it compares times; for eight streams that is too much for a longer input.
        Contest(
            Workload("8 streams, 5 s", *one_key(8, uniform(5 * eighths)), rows=eighths, **windows | {"seconds": 15}),
            on_one_key,
        ),
        Contest(Workload("4 streams, string key, 5 s", *one_key(4, words(250_000)), **windows), on_one_key),
        Contest(NexmarkJoin(), of_nexmark),
    ]


@dataclass
class Files:
    """The input of a contest on disk: one file for each stream and batch of the workload."""

    directory: Path
    contest: Contest

    def write(self) -> None:
        for number, batch in enumerate(self.contest.workload.batches()):
            for name, rows in batch.items():
                (self.directory / name).mkdir(parents=True, exist_ok=True)
                times = rows.column("ts").cast(pa.timestamp("us", "UTC"))
                table = pa.Table.from_batches([rows]).set_column(0, "ts", times)
                path = self.directory / name / f"{number:05d}.parquet"
                pq.write_table(table, path, use_dictionary=False)
                # Spark reads files in the order of these times. Small files are written within the same millisecond.
                os.utime(path, (1_000_000_000 + number,) * 2)

    def first(self, name: str, count: int) -> list[Path]:
        """The first `count` files of a stream."""
        return sorted((self.directory / name).glob("*.parquet"))[:count]

    def streams(self, spark: SparkSession, step: int, count: int) -> dict[str, DataFrame]:
        """The first `count` files of each stream, in micro-batches of `step` files."""
        streams = {}
        for name in self.contest.workload.streams:
            directory = self.directory / f"{count}" / name
            if not directory.exists():
                directory.mkdir(parents=True)
                for path in self.first(name, count):
                    (directory / path.name).hardlink_to(path)
            reader = spark.readStream.schema(spark.read.parquet(str(directory)).schema)
            streams[name] = reader.option("maxFilesPerTrigger", step).parquet(str(directory))
        return streams


@dataclass(frozen=True)
class Outcome:
    """Rows per second, the seconds of the measured micro-batches, and the peak memory of Python in bytes."""

    rate: float
    seconds: list[float] = field(default_factory=list)
    memory: int = 0


def run_braid(files: Files, spark: SparkSession, step: int, count: int, target: Path) -> Outcome:
    return _drain(braid_results(files, spark, step, count), files.contest, step, target)


def braid_results(files: Files, spark: SparkSession, step: int, count: int) -> DataFrame:
    session = braid.Session(spark)
    for name, stream in files.streams(spark, step, count).items():
        session.stream(name, stream, time="ts", lateness="0 seconds")
    return session.sql(files.contest.workload.text).dataframe.select(*files.contest.workload.outputs)


def run_chain(files: Files, spark: SparkSession, step: int, count: int, provider: str, target: Path) -> Outcome:
    return _drain(chain_results(files, spark, step, count, provider), files.contest, step, target)


def chain_results(files: Files, spark: SparkSession, step: int, count: int, provider: str) -> DataFrame:
    session = spark.newSession()
    for name, value in PROVIDERS[provider].items():
        session.conf.set(name, value)
    streams = {
        name: stream.withWatermark("ts", "0 seconds").select(*(F.col(c).alias(f"{name}_{c}") for c in stream.columns))
        for name, stream in files.streams(session, step, count).items()
    }
    workload = files.contest.workload
    return files.contest.chain(workload, streams).select(*workload.outputs)


def _drain(result: DataFrame, contest: Contest, step: int, target: Path) -> Outcome:
    """Run a streaming DataFrame to its end; the outcome is that of the micro-batches whose windows are full."""
    batches, memory = timed_batches(result, target)
    batch_rows = step * contest.workload.batch_rows
    whole_batches = [seconds for rows, seconds in batches if rows >= batch_rows]
    first_with_full_windows = -(-contest.workload.window_batches // step)
    measured = whole_batches[first_with_full_windows:] or whole_batches[-1:]
    return Outcome(batch_rows / float(np.median(measured)), measured, memory)


def timed_batches(result: DataFrame, target: Path) -> tuple[list[tuple[int, float]], int]:
    """Run a streaming DataFrame to its end: the rows and seconds of each batch, and the peak memory of Python."""
    with tempfile.TemporaryDirectory() as checkpoint, PythonMemory() as memory:
        writer = result.writeStream.format("parquet").option("path", str(target))
        # All row numbers differ, so a dictionary of them would only grow until Parquet gave it up.
        writer = writer.option("parquet.enable.dictionary", "false")
        started = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        started.awaitTermination()
        batches = [
            (sum(source.numInputRows for source in progress.sources), progress.durationMs["triggerExecution"] / 1_000)
            for progress in started.recentProgress
        ]
    return batches, memory.peak


def run_duckdb(files: Files, count: int, target: Path) -> Outcome:
    workload, connection = files.contest.workload, duckdb.connect()
    for name in workload.streams:
        connection.execute(f"CREATE TABLE {name} AS FROM read_parquet({list(map(str, files.first(name, count)))})")
    started = time.perf_counter()
    connection.execute(f"COPY ({workload.offline}) TO '{target}' (FORMAT parquet)")
    return Outcome(count * workload.batch_rows / (time.perf_counter() - started))


def check_equal(one: Path, other: Path) -> int:
    """The number of rows in two Parquet outputs; an AssertionError if the outputs differ."""
    left, right = (f"'{path}/*.parquet'" if path.is_dir() else f"'{path}'" for path in (one, other))
    connection = duckdb.connect()
    counts = [connection.sql(f"SELECT count(*) FROM {side}").fetchall()[0][0] for side in (left, right)]
    differing = connection.sql(
        f"SELECT count(*) FROM ((FROM {left} EXCEPT ALL FROM {right}) UNION ALL (FROM {right} EXCEPT ALL FROM {left}))"
    ).fetchall()[0][0]
    if differing:
        raise AssertionError(f"{one} has {counts[0]} rows, {other} has {counts[1]}, and {differing} differ")
    return int(counts[0])


def compete(contest: Contest, spark: SparkSession, directory: Path) -> list[str]:
    """Run a contest and return the cells of its line in the table."""
    files = Files(directory / "input", contest)
    workload = contest.workload
    with console.status(f"{workload.name}: writing the input"):
        files.write()
    with console.status(f"{workload.name}: DuckDB"):
        offline = run_duckdb(files, workload.count, directory / "duckdb.parquet")
    ours: list[Outcome] = []
    results = 0
    for step in contest.steps:
        with console.status(f"{workload.name}: Braid, warming up the JVM"):
            run_braid(files, spark, step, workload.count, directory / f"warm{step}")
    for step in contest.steps:
        with console.status(f"{workload.name}: Braid, {step * workload.batch_rows:,} rows a batch"):
            ours.append(run_braid(files, spark, step, workload.count, directory / f"braid{step}"))
            results = check_equal(directory / f"braid{step}", directory / "duckdb.parquet")
        print_outcome(f"{workload.name}: Braid, {step * workload.batch_rows:,} rows a batch", ours[-1])
    theirs: dict[str, list[Outcome]] = {provider: [] for provider in PROVIDERS}
    for step in contest.steps:
        for provider, outcomes in theirs.items():
            count, expected = contest.peer_files(step, provider), directory / "part.parquet"
            run_duckdb(files, count, expected)
            title = f"{workload.name}: Spark, {provider}, {step * workload.batch_rows:,} rows a batch"
            target = directory / f"{provider.replace(' ', '_')}{step}"
            with console.status(title):
                outcomes.append(run_chain(files, spark, step, count, provider, target))
                check_equal(target, expected)
            print_outcome(title, outcomes[-1])
    cells = [workload.name]
    for position, outcome in enumerate(ours):
        spark_rates = [outcomes[position].rate for outcomes in theirs.values()]
        cells += [f"{rate:,.0f}" for rate in (outcome.rate, *spark_rates)]
        cells.append(f"{outcome.rate / max(spark_rates):.1f}x")
    return [
        *cells,
        f"{offline.rate:,.0f}",
        f"{results:,}",
        f"{max(outcome.memory for outcome in ours) / 1e6:,.0f} MB",
    ]


def print_outcome(title: str, outcome: Outcome) -> None:
    batches = ", ".join(f"{seconds:.2f}" for seconds in outcome.seconds)
    console.print(
        f"{title}: {outcome.rate:,.0f} rows/s (batches of {batches} s; Python {outcome.memory / 1e6:,.0f} MB)"
    )


def small_batches(spark: SparkSession, directory: Path) -> str:
    """The time of micro-batches of 1,000 rows."""
    workload = Workload("1,000 rows a batch", *one_key(4, uniform(2_500)), seconds=30, rows=250)
    return beside_floors(Contest(workload, on_one_key), spark, directory, workload.streams)


def one_stream(spark: SparkSession, directory: Path) -> str:
    """The time of micro-batches of which one stream is most of the rows."""
    contest = Contest(NexmarkJoin(), of_nexmark)
    # Nearly every bid is one result.
    return beside_floors(contest, spark, directory, ("bids",))


def beside_floors(contest: Contest, spark: SparkSession, directory: Path, written: Collection[str]) -> str:
    """A table: the join with Braid and with Spark's own joins, and the same rows moved by Spark with nothing joined.

    Without a join, every row of the streams in `written` is one row of output.
    """
    workload, files = contest.workload, Files(directory / "input", contest)
    files.write()
    expected = directory / "duckdb.parquet"
    run_duckdb(files, workload.count, expected)
    joined = {
        "joined by Braid": partial(run_braid, files, spark, 1, workload.count),
        "joined by Spark, state in memory": partial(run_chain, files, spark, 1, workload.count, "in memory"),
    }
    moved = {
        f"not joined, {way}": partial(_drain, frame, contest, 1)
        for way, frame in floors(files.streams(spark, 1, workload.count), written, len(workload.outputs)).items()
    }
    lines = [f"| {workload.name} | seconds a micro-batch | rows/s |", "|---|---|---|"]
    for way, run in (joined | moved).items():
        for name in ("warm", "measured"):
            target = directory / f"{way} {name}"
            with console.status(f"{workload.name}: {way}, {name}"):
                outcome = run(target)
        if way in joined:
            check_equal(target, expected)
        print_outcome(f"{workload.name}: {way}", outcome)
        lines.append(f"| {way} | {np.median(outcome.seconds):.2f} | {outcome.rate:,.0f} |")
    return "\n".join(lines)


def cold_start(spark: SparkSession, directory: Path) -> str:
    """The time from the start of a program to its first results, beside a Spark that has nothing to do."""
    archive = "with" if ARCHIVE.exists() else "without"
    files = Files(directory / "input", Contest(NexmarkJoin(count=3), of_nexmark))
    files.write()
    seconds: dict[str, list[float]] = {"braid": [], "spark": [], "floor": []}
    for _ in range(COLD_STARTS):
        for way, measured in seconds.items():
            with console.status(f"cold start: {way}"):
                measured.append(first_results(way, files.directory))
    ours, theirs, floor = (float(np.median(measured)) for measured in seconds.values())
    return (
        f"From the start of a program to the first results of the Nexmark join: {ours:.1f} s with Braid, "
        f"{theirs:.1f} s with Spark's own joins, {floor:.1f} s if the rows pass through an empty stateful "
        f"operator in Python (medians of {COLD_STARTS}, {archive} the archive of Java's classes of `braid prepare`)."
    )


def without_a_join(spark: SparkSession, directory: Path) -> str:
    """The rate at which Spark reads the rows of R4 and writes as many results, through Python and without Python."""
    contest = contests()[0]
    names = contest.workload.outputs

    def carry(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_arrays([batch.column("row")] * len(names), list(names))

    ways: dict[str, Callable[[DataFrame], DataFrame]] = {
        "through Python": lambda stream: stream.mapInArrow(carry, ", ".join(f"{name} long" for name in names)),
        "in Spark alone": lambda stream: stream.select(*(F.col("row").alias(name) for name in names)),
    }
    files, step, rates = Files(directory / "input", contest), contest.steps[-1], {}
    files.write()
    for way, move in ways.items():
        with console.status(f"{contest.workload.name}: nothing joined, {way}"):
            for run in ("warm", "measured"):
                streams = files.streams(spark, step, contest.workload.count).values()
                moved = reduce(DataFrame.union, [move(stream) for stream in streams])
                outcome = _drain(moved, contest, step, directory / f"{way} {run}")
            rates[way] = outcome.rate
        print_outcome(f"{contest.workload.name}: nothing joined, {way}", outcome)
    measured = " and ".join(f"{rate:,.0f} rows/s {way}" for way, rate in rates.items())
    return f"Reading and writing the rows of R4 without a shuffle, state or join: {measured}."


def growth(spark: SparkSession, directory: Path) -> str:
    """The cost of twice the input, and of windows ten times as long with as many results."""
    reference = replace(contests()[0].workload, seconds=20)
    longer = replace(reference, seconds=2 * reference.seconds)
    wide = replace(
        reference, columns=one_key(4, uniform(5_000_000))[0], window_seconds=100, seconds=120, name="100 s windows"
    )
    totals, rates = [], []
    for workload in (reference, longer, wide):
        contest = Contest(workload, on_one_key, steps=(5,))
        files = Files(directory / f"{workload.seconds}{workload.window_seconds}", contest)
        with console.status(f"growth: {workload.seconds} s of input, {workload.window_seconds} s windows"):
            files.write()
            outcome = run_braid(files, spark, 5, workload.seconds, files.directory / "result")
        print_outcome(f"{workload.seconds} s of input, {workload.window_seconds} s windows", outcome)
        rates.append(outcome.rate)
        totals.append(sum(outcome.seconds) / len(outcome.seconds) * workload.seconds / 5)
        shutil.rmtree(files.directory)
    return (
        f"Twice the input takes {totals[1] / totals[0]:.2f} times the time (full windows). "
        f"Windows ten times as long, with as many results, cost {rates[0] / rates[2]:.2f} times as much per row."
    )


EXTRAS = (small_batches, one_stream, cold_start, without_a_join, growth)
"""What is measured besides the workloads, each with a name of its own."""


def write(lines: list[str], names: list[str]) -> None:
    """Write the page with the lines so far, unless only some workloads were chosen."""
    if not names:
        RESULTS.write_text("\n".join(["# On Spark (`python -m benchmarks.spark`)", "", *lines, ""]))


def main() -> None:
    names = sys.argv[1:]
    chosen = [contest for contest in contests() if not names or any(name in contest.workload.name for name in names)]
    settings = {"spark.driver.memory": MEMORY, "spark.sql.streaming.numRecentProgressUpdates": "1000"}
    spark = local_spark(settings=settings)
    spark.sparkContext.setLogLevel("ERROR")
    sizes = [
        f"{rows} rows a batch: Braid | {' | '.join(PROVIDERS)} | Braid / best" for rows in ("200,000", "1,000,000")
    ]
    head = ["workload", *sizes, "DuckDB offline", "results", "Python, peak"]
    lines = [f"| {' | '.join(head)} |", "|---" * (len(head) + 2 * (1 + len(PROVIDERS))) + "|"]
    for contest in chosen:
        with tempfile.TemporaryDirectory() as directory:
            lines.append(f"| {' | '.join(compete(contest, spark, Path(directory)))} |")
        write(lines, names)
    lines.append(NOTES)
    for extra in EXTRAS:
        if names and extra.__name__ not in names:
            continue
        with tempfile.TemporaryDirectory() as directory:
            lines += ["", extra(spark, Path(directory))]
        write(lines, names)
    console.print("\n".join(lines), markup=False)
    spark.stop()


if __name__ == "__main__":
    main()
