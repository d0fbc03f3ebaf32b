"""Rows per second of a join with skewed keys, compared with the same join without skew.

The rows of one stream are skewed, those of the other are not. So there are as many results as without skew, about one
for each row, and what skew costs is only that some shards have more to do. Each way runs on the same files, on one
Spark, with a shard for each core: Braid with heavy keys spread, Braid without, and Spark's own join.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console

import braid
from benchmarks.spark import MEMORY, Contest, Files, chain_results, check_equal, run_duckdb, timed_batches
from benchmarks.spark_joins import on_one_key
from benchmarks.workload import Keys, Workload, uniform, zipf
from braid.hosts.spark.driver.local_spark import local_spark

WINDOW, MEASURED = 4, 8
"""The seconds of a window, and the last batches, which are measured."""

SPREAD, KEPT, SPARK = "Braid, heavy keys spread", "Braid, heavy keys in one shard", "Spark's own join"
NO_SKEW = "no skew"

console = Console()


@dataclass(frozen=True)
class Scale:
    """How much is measured: rows of each stream in a second of event time, seconds, and kinds of keys.

    Each second is a batch. A heavy key is found after about eight batches, and spread a window later.
    """

    rows: int = 40_000
    seconds: int = 24
    kinds: int = 4


FULL, SHORT = Scale(), Scale(rows=1_000, seconds=6, kinds=2)


def one_heavy(domain: int) -> Keys:
    """Three rows of five have the key 0: three of ten of all rows, because the other stream has as many."""
    others = uniform(domain)

    def draw(generator: np.random.Generator, count: int) -> pa.Array:
        keys = np.array(others(generator, count))
        keys[generator.random(count) < 0.6] = 0
        return pa.array(keys)

    return draw


def workloads(scale: Scale) -> list[Workload]:
    """The same join over streams with the same rates: the keys of one stream are drawn in different ways."""
    domain = WINDOW * scale.rows
    ways: dict[str, Keys] = {
        NO_SKEW: uniform(domain),
        "one key with 30%": one_heavy(domain),
        "zipf 1.2": zipf(domain, 1.2),
        "zipf 1.5": zipf(domain, 1.5),
    }
    return [
        Workload(
            name,
            {"a": {"k": draw}, "b": {"k": uniform(domain)}},
            "a.k = b.k",
            window_seconds=WINDOW,
            seconds=scale.seconds,
            rows=scale.rows,
        )
        for name, draw in list(ways.items())[: scale.kinds]
    ]


def braid_results(files: Files, spark: SparkSession, count: int, *, spread: bool) -> DataFrame:
    # Without adaptation, no keys are spread. A join of two streams has only one order, so nothing else changes.
    session = braid.Session(spark, adapt=spread)
    for name, stream in files.streams(spark, 1, count).items():
        session.stream(name, stream, time="ts", lateness="0 seconds")
    workload = files.contest.workload
    return session.sql(workload.text, shards=os.cpu_count()).dataframe.select(*workload.outputs)


def rates(workload: Workload, spark: SparkSession, directory: Path) -> dict[str, float]:
    """Input rows per second of each way, in the last batches; their outputs are compared with DuckDB's first."""
    files = Files(directory / "input", Contest(workload, on_one_key))
    files.write()
    run_duckdb(files, workload.count, directory / "expected.parquet")
    ways = {
        SPREAD: lambda: braid_results(files, spark, workload.count, spread=True),
        KEPT: lambda: braid_results(files, spark, workload.count, spread=False),
        SPARK: lambda: chain_results(files, spark, 1, workload.count, "in memory"),
    }
    measured = {}
    for number, (way, results) in enumerate(ways.items()):
        target = directory / f"results{number}"
        with console.status(f"{workload.name}: {way}"):
            batches, _ = timed_batches(results(), target)
            check_equal(target, directory / "expected.parquet")
        seconds = [spent for rows, spent in batches if rows >= workload.batch_rows][-MEASURED:]
        measured[way] = workload.batch_rows / float(np.median(seconds))
        shown = ", ".join(f"{spent:.2f}" for spent in seconds)
        console.print(f"{workload.name}: {way}: {measured[way]:,.0f} rows/s (batches of {shown} s)")
    return measured


def measure(scale: Scale = FULL) -> str:
    """The section of the page, with one line for each kind of keys."""
    cores = os.cpu_count() or 1
    spark = local_spark(cores, {"spark.driver.memory": MEMORY, "spark.sql.shuffle.partitions": str(cores)})
    spark.sparkContext.setLogLevel("ERROR")
    measured = {}
    with tempfile.TemporaryDirectory() as directory:
        first, *_ = planned = workloads(scale)
        if scale == FULL:
            rates(replace(first, name="warming up"), spark, Path(directory) / "warm")
        for workload in planned:
            measured[workload.name] = rates(workload, spark, Path(directory) / workload.name.replace(" ", "_"))
    ways = (SPREAD, KEPT, SPARK)
    lines = [
        f"{scale.rows:,} rows of each of two streams in a batch, windows of {WINDOW} s, {cores} cores and as many "
        f"shards; rows per second, the median of the last {MEASURED} of {scale.seconds} batches. Only one stream is "
        "skewed, so that there are as many results as without skew. In brackets, the share of what the same way does "
        "without skew. The outputs are equal.",
        "",
        f"| keys | {' | '.join(ways)} |",
        f"|---|{'---|' * len(ways)}",
    ]
    for name, of_keys in measured.items():
        cells = [f"{of_keys[way]:,.0f} ({of_keys[way] / measured[NO_SKEW][way]:.2f})" for way in ways]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)
