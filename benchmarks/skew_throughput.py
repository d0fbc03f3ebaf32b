"""Rows per second of a join with skewed keys, compared with the same join without skew.

There are two kinds of workloads. In the first, only one stream is skewed, so there are as many results as without skew,
about one for each row, and what skew costs is that some shards have more to do. In the second, both streams are skewed,
and a heavy key makes most of the results. These are compared with streams that have so few keys, each as frequent, that
there are as many results. Each way runs on the same files, on one Spark: Braid with heavy keys spread, Braid without,
and Spark's own join.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure
from pyspark.sql import SparkSession
from rich.console import Console

import braid
from benchmarks.spark import MEMORY, Contest, Files, chain_results, check_equal, run_duckdb, timed_batches
from benchmarks.spark_joins import on_one_key
from benchmarks.workload import Keys, Workload, uniform, zipf
from braid.hosts.spark.driver.local_spark import local_spark
from braid.hosts.spark.driver.query import SparkQuery

WINDOW, MEASURED = 2, 6
"""The seconds of a window, and the last batches, which are measured."""

SHARDS = 8
"""More than cores here: a key is heavy by its share of a shard, so two shards would hardly have heavy keys."""

FEW_KEYS = 10_000
"""The keys of streams that are both skewed."""

SPREAD, KEPT, SPARK = "Braid, heavy keys spread", "Braid, heavy keys in one shard", "Spark's own join"
NO_SKEW, AS_MANY = "no skew", "no skew, as many results"

PLOT = Path(__file__).parent.parent / "docs" / "results" / "skew.png"
GOAL = 0.7
"""The share of the rate without skew that a rate with skew should have."""

console = Console()


@dataclass(frozen=True)
class Scale:
    """How much is measured: rows of each stream in a second of event time, fewer if both are skewed; and seconds.

    Each second is a batch. A heavy key is found after four batches or eight, and spread a window later.
    """

    rows: int = 50_000
    rows_of_both: int = 1_500
    seconds: int = 18


FULL, SHORT = Scale(), Scale(rows=1_000, rows_of_both=300, seconds=6)


def one_heavy(domain: int) -> Keys:
    """Three rows of five have the key 0: three of ten of all rows, because the other stream has as many."""
    others = uniform(domain)

    def draw(generator: np.random.Generator, count: int) -> pa.Array:
        keys = np.array(others(generator, count))
        keys[generator.random(count) < 0.6] = 0
        return pa.array(keys)

    return draw


def workloads(scale: Scale) -> dict[str, list[Workload]]:
    """The workloads by what they are compared with, which comes first."""
    domain = WINDOW * scale.rows
    one_stream: dict[str, tuple[Keys, Keys]] = {
        NO_SKEW: (uniform(domain), uniform(domain)),
        "one stream, one key with 30% of all rows": (one_heavy(domain), uniform(domain)),
        "one stream, zipf 1.2": (zipf(domain, 1.2), uniform(domain)),
        "one stream, zipf 1.5": (zipf(domain, 1.5), uniform(domain)),
    }
    weights = np.arange(1, FEW_KEYS + 1) ** -1.2
    as_frequent = round(float(weights.sum() ** 2 / (weights**2).sum()))
    both_streams: dict[str, tuple[Keys, Keys]] = {
        AS_MANY: (uniform(as_frequent), uniform(as_frequent)),
        "both streams, zipf 1.2": (zipf(FEW_KEYS, 1.2), zipf(FEW_KEYS, 1.2)),
    }
    return {
        NO_SKEW: [_workload(name, keys, scale.rows, scale.seconds) for name, keys in one_stream.items()],
        AS_MANY: [_workload(name, keys, scale.rows_of_both, scale.seconds) for name, keys in both_streams.items()],
    }


def _workload(name: str, keys: tuple[Keys, Keys], rows: int, seconds: int) -> Workload:
    columns = {stream: {"k": draw} for stream, draw in zip("ab", keys, strict=True)}
    return Workload(name, columns, "a.k = b.k", window_seconds=WINDOW, seconds=seconds, rows=rows)


def braid_query(files: Files, spark: SparkSession, *, spread: bool) -> SparkQuery:
    # Without adaptation, no keys are spread. A join of two streams has only one order, so nothing else changes.
    session = braid.Session(spark, adapt=spread)
    workload = files.contest.workload
    for name, stream in files.streams(spark, 1, workload.count).items():
        session.stream(name, stream, time="ts", lateness="0 seconds")
    return session.sql(workload.text, shards=SHARDS)


@dataclass(frozen=True)
class Measured:
    """Input rows per second of each way, in the last batches, and how many keys were spread at the end."""

    rates: dict[str, float]
    keys: int


def run(workload: Workload, spark: SparkSession, directory: Path) -> Measured:
    """Measure each way on the same files; its output is compared with DuckDB's first."""
    files = Files(directory / "input", Contest(workload, on_one_key))
    files.write()
    run_duckdb(files, workload.count, directory / "expected.parquet")
    spreading, keeping = (braid_query(files, spark, spread=spread) for spread in (True, False))
    ways = {
        SPREAD: spreading.dataframe.select(*workload.outputs),
        KEPT: keeping.dataframe.select(*workload.outputs),
        SPARK: chain_results(files, spark, 1, workload.count, "in memory"),
    }
    rates = {}
    for number, (way, results) in enumerate(ways.items()):
        target = directory / f"results{number}"
        with console.status(f"{workload.name}: {way}"):
            batches, _ = timed_batches(results, target)
            check_equal(target, directory / "expected.parquet")
        seconds = [spent for rows, spent in batches if rows >= workload.batch_rows][-MEASURED:]
        rates[way] = workload.batch_rows / float(np.median(seconds))
        shown = ", ".join(f"{spent:.2f}" for spent in seconds)
        console.print(f"{workload.name}: {way}: {rates[way]:,.0f} rows/s (batches of {shown} s)")
    heavy = [line for line in spreading.explain().splitlines() if line.startswith("heavy key") and "are spread" in line]
    return Measured(rates, len(heavy))


def measure(scale: Scale = FULL) -> str:
    """The section of the page, with one line for each kind of keys."""
    cores = os.cpu_count() or 1
    spark = local_spark(cores, {"spark.driver.memory": MEMORY, "spark.sql.shuffle.partitions": str(SHARDS)})
    spark.sparkContext.setLogLevel("ERROR")
    ways = (SPREAD, KEPT, SPARK)
    lines = [
        f"Two streams, windows of {WINDOW} s, {cores} cores and {SHARDS} shards; rows per second, the median of the "
        f"last {MEASURED} of {scale.seconds} batches. If one stream is skewed, a batch has {scale.rows:,} rows of each "
        f"stream, and there are as many results as without skew. If both are, it has {scale.rows_of_both:,}; they are "
        "compared with streams of so few keys, each as frequent, that there are as many results. In brackets, the "
        "share of what the same way does without skew. The outputs are equal.",
        "",
        f"| keys | {' | '.join(ways)} | keys spread |",
        f"|---|{'---|' * len(ways)}---|",
    ]
    kinds: list[dict[str, Measured]] = []
    with tempfile.TemporaryDirectory() as directory:
        planned = workloads(scale)
        if scale == FULL:
            warming_up = replace(planned[NO_SKEW][0], name="warming up", seconds=MEASURED)
            run(warming_up, spark, Path(directory) / "warm")
        for number, (compared, of_kind) in enumerate(planned.items()):
            measured = {
                workload.name: run(workload, spark, Path(directory) / f"{number}-{position}")
                for position, workload in enumerate(of_kind)
            }
            kinds.append(measured)
            even = measured[compared].rates
            for name, of_keys in measured.items():
                cells = [f"{of_keys.rates[way]:,.0f} ({of_keys.rates[way] / even[way]:.2f})" for way in ways]
                lines.append(f"| {name} | {' | '.join(cells)} | {of_keys.keys} |")
    spark.stop()
    if scale == FULL:
        draw(kinds)
        lines += ["", f"![Rows per second, by keys]({PLOT.name})"]
    return "\n".join(lines)


def draw(kinds: Sequence[Mapping[str, Measured]]) -> None:
    """A group of bars for each kind of keys, with a line for the goal of the first way, for the page."""
    figure = Figure(figsize=(11, 4), layout="constrained")
    panels = figure.subplots(1, len(kinds), width_ratios=[len(measured) for measured in kinds])
    for axes, measured in zip(panels, kinds, strict=True):
        names = list(measured)
        for position, way in enumerate((SPREAD, KEPT, SPARK)):
            bars = np.arange(len(names)) + 0.27 * (position - 1)
            axes.bar(bars, [of_keys.rates[way] for of_keys in measured.values()], 0.25, label=way)
        goal = GOAL * measured[names[0]].rates[SPREAD]
        axes.axhline(goal, color="grey", linestyle=":", label=f"{GOAL} of the first bar")
        axes.set_xticks(np.arange(len(names)), [name.replace(", ", ",\n").replace("with ", "with\n") for name in names])
        axes.set_ylabel("rows per second")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize="small")
    figure.savefig(PLOT, dpi=110, metadata={"Software": None})
