"""Skewed keys, with heavy keys spread and without, beside Spark's own joins: `python -m benchmarks.skew [part]`.

The part `evenness` counts rows and work of each shard, which do not depend on the machine. The shards run in memory,
batch by batch, with the code that routes, joins and decides on Spark too. The part `throughput` measures rows per
second on Spark, with skew and without. Each writes its section of docs/results/skew.md; with `--short` they only try
everything on little data, and print it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from braid.runtime.report import ShardReport
from braid.runtime.spread_controller import SpreadController
from braid.testing.case import Case
from braid.testing.cluster import ShardedCase

TEXT = """SELECT a.n AS an, b.n AS bn FROM a [RANGE 2 SECONDS], b [RANGE 2 SECONDS] WHERE a.k = b.k"""
KEYS = 10_000
SECONDS = 20
RESULTS = Path(__file__).parent.parent / "docs" / "results" / "skew.md"
PAGE = "# Skewed keys (`python -m benchmarks.skew`)\n"
TITLES = {"evenness": "How even the shards are", "throughput": "Rows per second"}
"""The parts, and the titles of their sections of the page."""

COPIES = (
    "Copies are the price: if one stream is much larger, its rows with a heavy key are spread, and those of the other "
    "are in every shard of that key; if both are large, the shards of the key form a grid. A key has as many shards "
    "as its rows and its work need. Whatever the scheme, a single key with 30% of all rows alone brings one of 32 "
    "shards 1.36 times the mean of rows before copying with four times the rows in one stream, and 1.70 times with "
    "equal streams ([why](../design/20261118_heavy_keys.md))."
)
STREAMS = {"one stream with four times the rows": (8_000, 2_000), "two equal streams": (5_000, 5_000)}
"""The rows of the two streams in each second. The fewer rows the smaller one has, the fewer are copied."""

SHORTENED = 20
"""A short run has so many times fewer rows."""
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


@dataclass(frozen=True)
class Evenness:
    """The rows and work of the largest shard, in means; rows in all shards per row of input; keys that are spread."""

    rows: float
    work: float
    copies: float = 1.0
    keys: int = 0

    @property
    def cells(self) -> str:
        # The mean of all shards has the copies in it; without copies it would be so many times smaller.
        before_copying = self.rows * self.copies
        return f"{self.rows:.2f} | {before_copying:.2f} | {self.work:.2f} | {self.copies:.2f} | {self.keys}"


def measure(draw: Draw, shards: int, rows: Sequence[int], *, spread: bool) -> Evenness:
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
    keys = {(key.dimension, key.word) for key in cluster.table.keys}
    return Evenness(float(largest[0]), float(largest[1]), float(copies), len(keys))


def measure_spark(draw: Draw, shards: int, rows: Sequence[int]) -> Evenness:
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
    return Evenness(largest[0], largest[1])


def counts(reports: Sequence[ShardReport]) -> np.ndarray:
    rows = [sum(stream.received for stream in report.observation.streams.values()) for report in reports]
    return np.array([rows, [report.observation.work for report in reports]])


def evenness(short: bool = False) -> str:
    """The section of the page with the largest shards."""
    lines = [
        f"Two streams, 10,000 rows in each second of event time, {KEYS:,} keys, windows of 2 s; the last {MEASURED} of "
        f"{SECONDS} batches. Counts, not times: the largest shard in multiples of the mean of all shards. The mean of "
        "rows has the copies in it; the next column compares with the mean before copying. Work is what shards report "
        "(probes and candidates); of Spark's own join it is results. Spark divides a join by a hash of the key and "
        "copies nothing; its figures are of one batch of these rows, divided by Spark itself."
    ]

    def add(line: str) -> None:
        lines.append(line)
        print(line, flush=True)

    for streams, listed in STREAMS.items():
        rows = [count // SHORTENED for count in listed] if short else listed
        titles = "keys | shards | heavy keys | largest shard: rows | against rows before copying | work | rows in all "
        add(f"\nRows in a second, {streams}: {rows[0]:,} and {rows[1]:,}.\n")
        add(f"| {titles}shards per row | keys spread |\n|---|---|---|---|---|---|---|---|")
        for name, draw in WORKLOADS.items():
            for shards in (8, 32):
                add(f"| {name} | {shards} | Spark's own join | {measure_spark(draw, shards, rows).cells} |")
                for spread in (False, True):
                    measured = measure(draw, shards, rows, spread=spread)
                    add(f"| {name} | {shards} | {'spread' if spread else 'in one shard'} | {measured.cells} |")
    return "\n".join([*lines, "", COPIES])


def throughput(short: bool = False) -> str:
    from benchmarks.skew_throughput import FULL, SHORT, measure

    return measure(SHORT if short else FULL)


def page_with(page: str, title: str, section: str) -> str:
    """A page in which one section is new, and all others are as they were.

    >>> page_with("# Page\\n\\n## a\\n\\nold\\n\\n## b\\n\\nkept\\n", "a", "new")
    '# Page\\n\\n## a\\n\\nnew\\n\\n## b\\n\\nkept\\n'
    """
    head, *others = page.rstrip().split("\n## ")
    sections = dict(other.split("\n", 1) for other in others) | {title: f"\n{section}\n"}
    return "\n\n".join([head.rstrip(), *(f"## {name}\n\n{text.strip()}" for name, text in sections.items())]) + "\n"


def main(parts: Sequence[str], *, short: bool = False) -> None:
    for part in parts:
        title = TITLES[part]
        section = evenness(short) if part == "evenness" else throughput(short)
        if short:
            print(section)
        else:
            RESULTS.write_text(page_with(RESULTS.read_text() if RESULTS.exists() else PAGE, title, section))


if __name__ == "__main__":
    words = sys.argv[1:]
    unknown = [word for word in words if word not in (*TITLES, "--short")]
    if unknown:
        sys.exit(f"there is no part '{unknown[0]}'; the parts are {', '.join(TITLES)}")
    main([word for word in words if word in TITLES] or list(TITLES), short="--short" in words)
