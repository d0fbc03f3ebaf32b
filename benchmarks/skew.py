"""How even the shards are when keys are skewed, with heavy keys spread and without: `python -m benchmarks.skew`.

Counts rows and work of each shard, which do not depend on the machine. The shards run in memory, batch by batch, with
the code that routes, joins and decides on Spark too. With `--spark` it also counts how Spark divides the same join.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from braid.runtime.report import ShardReport
from braid.runtime.spread_controller import SpreadController
from braid.testing.case import Case
from braid.testing.cluster import ShardedCase

TEXT = """SELECT a.n AS an, b.n AS bn FROM a [RANGE 2 SECONDS], b [RANGE 2 SECONDS] WHERE a.k = b.k"""
KEYS = 10_000
SECONDS = 20
MEASURED = 6
"""The last batches, which are measured: by then heavy keys are spread, and older rows have ended."""

Draw = Callable[[np.random.Generator, int], np.ndarray]


def one_heavy(generator: np.random.Generator, count: int) -> np.ndarray:
    keys = generator.integers(1, KEYS, count)
    keys[generator.random(count) < 0.3] = 0
    return keys


def zipf(skew: float) -> Draw:
    weights = np.arange(1, KEYS + 1) ** -skew
    return lambda generator, count: generator.choice(KEYS, count, p=weights / weights.sum())


WORKLOADS: dict[str, Draw] = {"one key with 30%": one_heavy, "zipf 1.2": zipf(1.2), "zipf 1.5": zipf(1.5)}


def batch(draw: Draw, generator: np.random.Generator, second: int, rows: Sequence[int]) -> dict[str, pa.Table]:
    """One second of both streams."""
    tables = {}
    for name, count in zip("ab", rows, strict=True):
        times = second * 1_000_000 + np.sort(generator.integers(0, 1_000_000, count))
        tables[name] = pa.table(
            {"ts": pa.array(times, pa.timestamp("us")), "k": draw(generator, count), "n": np.arange(count)}
        )
    return tables


def measure(draw: Draw, shards: int, rows: Sequence[int], *, spread: bool) -> tuple[float, float, float, int]:
    """The rows and work of the largest shard, in means; rows in all shards per row of input; keys that are spread."""
    generator = np.random.default_rng(7)
    empty = batch(draw, generator, 0, (0, 0))
    case = Case(TEXT, empty, dict.fromkeys("ab", "ts"), dict.fromkeys("ab", 0), None, None)
    cluster = ShardedCase(case, shards)
    controller = SpreadController(cluster.spec.narrow, cluster.spec.router)
    totals = np.zeros((2, cluster.spec.router.shards))
    for second in range(SECONDS):
        cluster.reports.clear()
        cluster.results.clear()
        cluster.batch(batch(draw, generator, second, rows))
        if spread:
            cluster.table = controller.observe(cluster.reports) or cluster.table
        if second >= SECONDS - MEASURED:
            totals += counts(cluster.reports)
    largest = totals.max(axis=1) / totals.mean(axis=1)
    copies = totals[0].sum() / (MEASURED * sum(rows))
    return float(largest[0]), float(largest[1]), float(copies), len(cluster.table.keys)


def measure_spark(draw: Draw, shards: int, rows: Sequence[int]) -> tuple[float, float]:
    """The rows and results of the largest partition, in means, as Spark divides a join of the same rows by its key."""
    from pyspark.sql import functions as F  # noqa: N812

    from braid.hosts.spark.driver.local_spark import local_spark

    generator = np.random.default_rng(7)
    spark = local_spark(settings={"spark.sql.autoBroadcastJoinThreshold": "-1", "spark.sql.adaptive.enabled": "false"})
    tables = batch(draw, generator, 0, rows)
    a, b = (spark.createDataFrame(tables[name]).repartition(shards, "k") for name in "ab")
    largest = []
    for frame in (a.select("k").union(b.select("k")).repartition(shards, "k"), a.join(b, "k").repartition(shards, "k")):
        counted = frame.groupBy(F.spark_partition_id().alias("partition")).count().collect()
        sizes = [row["count"] for row in counted]
        largest.append(max(sizes) * shards / sum(sizes))
    return largest[0], largest[1]


def counts(reports: Sequence[ShardReport]) -> np.ndarray:
    rows = [sum(stream.received for stream in report.observation.streams.values()) for report in reports]
    return np.array([rows, [report.observation.work for report in reports]])


def main(rows: Sequence[int] = (8_000, 2_000), *, with_spark: bool = False) -> None:
    print("| keys | shards | heavy keys | largest shard: rows | work | rows in all shards per row | keys spread |")
    print("|---|---|---|---|---|---|---|")
    for name, draw in WORKLOADS.items():
        for shards in (8, 32):
            if with_spark:
                shard_rows, work = measure_spark(draw, shards, rows)
                print(
                    f"| {name} | {shards} | Spark's own join | {shard_rows:.2f} | {work:.2f} | 1.00 | 0 |", flush=True
                )
            for spread in (False, True):
                shard_rows, work, copies, keys = measure(draw, shards, rows, spread=spread)
                figures = f"{shard_rows:.2f} | {work:.2f} | {copies:.2f} | {keys}"
                print(f"| {name} | {shards} | {'spread' if spread else 'in one shard'} | {figures} |", flush=True)


if __name__ == "__main__":
    main(with_spark="--spark" in sys.argv)
