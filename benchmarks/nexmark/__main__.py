"""Runs Nexmark's queries and the joins of many streams. See `benchmarks.nexmark`."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from rich.console import Console

from benchmarks.nexmark.generator import Auctions
from benchmarks.nexmark.multiway import JOINS, MultiwayJoin, shifting
from benchmarks.nexmark.page import HEADER, JOIN_HEADER, RESULTS, Joined, draw, join_line, line, page
from benchmarks.nexmark.queries import all_queries
from benchmarks.nexmark.query import Impossible, Query
from benchmarks.nexmark.running import Contest, Input, Outcome
from benchmarks.regret_runs import run as run_in_one_process
from benchmarks.regret_workloads import Contest as Counted
from braid.hosts.spark.driver.local_spark import local_spark
from braid.workloads.nexmark import Nexmark

RATE, DISORDER = 10_000, 7_001
"""Rows per second of event time, and how many rows in a row exchange their times: up to 0.7 seconds."""
PHASES, COUNTED_ROWS = 4, 50_000
"""How often the rates change, and the rows of a batch where work is counted."""

console = Console()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.nexmark")
    parser.add_argument(
        "names", nargs="*", help="queries to run, as q3 or j1; without any, all, and the page is written"
    )
    parser.add_argument("--rows", type=int, default=200_000, help="rows of all streams in a micro-batch")
    parser.add_argument("--batches", type=int, default=8, help="micro-batches of a run")
    return parser.parse_args()


@contextmanager
def contest(query: Query, files: Input, spark: SparkSession) -> Iterator[Contest]:
    with tempfile.TemporaryDirectory() as directory:
        yield Contest(query, files, spark, Path(directory))


def run_query(query: Query, files: Input, spark: SparkSession) -> Outcome:
    with contest(query, files, spark) as prepared:
        with console.status(f"{query.name}: Braid"):
            ours, results = prepared.run_braid()
        with console.status(f"{query.name}: Spark"):
            theirs = prepared.run_spark()
    return Outcome(query, ours, theirs, results)


def run_join(join: MultiwayJoin, files: Input, spark: SparkSession) -> Joined:
    with contest(join.query, files, spark) as prepared:
        with console.status(f"{join.name}: Braid, warming up the JVM"):
            prepared.warm_up()
        with console.status(f"{join.name}: Braid, adapting"):
            ours, results = prepared.run_braid()
        with console.status(f"{join.name}: Braid, in the order of the text"):
            in_text_order, _ = prepared.run_braid(adapt=False)
        with console.status(f"{join.name}: Spark"):
            theirs = prepared.run_spark()
    with console.status(f"{join.name}: counting work"):
        counted = Counted(join.name, join.text, _rows_to_count, steady=False, time="dateTime")
        adaptive, text = (run_in_one_process(counted, adapt=adapt) for adapt in (True, False))
    verdicts = Counter(change.verdict for change in adaptive.changes)
    works = (run.total() / sum(run.rows) for run in (adaptive, text))
    return Joined(Outcome(join.query, ours, theirs, results), in_text_order, *works, kept=verdicts["kept"])


def _rows_to_count() -> Iterator[dict[str, pa.RecordBatch]]:
    return (dict(batch) for batch in Auctions(shifting(COUNTED_ROWS, 5), 5 * PHASES).batches())


def taken(rows: int, batches: int, load: float) -> str:
    """How the figures were taken."""
    text = (
        f"Micro-batches of {rows:,} rows, {batches} of them; those of the joins below have {rows // 2:,}, "
        f"{2 * batches} of them. {os.cpu_count()} cores."
    )
    if load > 1:
        text += f" The cores had other work meanwhile (a load of {load:.1f} at the start): compare, do not quote."
    return text


def show(text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def main() -> None:
    given, load = arguments(), os.getloadavg()[0]
    queries, joins = all_queries(), list(JOINS)
    known = [query.name for query in [*queries, *joins]]
    unknown = [name for name in given.names if name not in known]
    if unknown:
        raise SystemExit(f"there is no query {', '.join(unknown)}; there are {', '.join(known)}")
    queries = [query for query in queries if not given.names or query.name in given.names]
    joins = [join for join in joins if not given.names or join.name in given.names]
    settings = {"spark.driver.memory": "8g", "spark.sql.streaming.numRecentProgressUpdates": "1000"}
    spark = local_spark(settings=settings)
    spark.sparkContext.setLogLevel("FATAL")
    with tempfile.TemporaryDirectory() as name:
        with console.status("writing the input"):
            steady = Auctions(Nexmark(RATE, given.rows, disorder=DISORDER), given.batches)
            files = Input.write(steady, Path(name, "steady"))
            shifts = Auctions(shifting(given.rows // 2, 2 * given.batches // PHASES), 2 * given.batches)
            shifting_files = Input.write(shifts, Path(name, "shifting"))
        lines, outcomes = run_queries(queries, files, spark)
        joined = run_joins(joins, shifting_files, spark)
    spark.stop()
    if not given.names:
        text = page(lines, [join_line(join) for join in joined], outcomes, taken(given.rows, given.batches, load))
        (RESULTS / "nexmark.md").write_text(text)
        draw(outcomes, joined).savefig(RESULTS / "nexmark.png", dpi=110, metadata={"Software": None})


def run_queries(
    queries: Sequence[Query | Impossible], files: Input, spark: SparkSession
) -> tuple[list[str], list[Outcome]]:
    lines, outcomes = [], []
    for first in [query for query in queries if isinstance(query, Query)][:1]:
        with contest(first, files, spark) as prepared, console.status(f"{first.name}: warming up the JVM"):
            prepared.warm_up()
    show(HEADER)
    for query in queries:
        outcome = None if isinstance(query, Impossible) else run_query(query, files, spark)
        outcomes += [] if outcome is None else [outcome]
        lines.append(line(query, outcome))
        show(lines[-1])
    return lines, outcomes


def run_joins(joins: Sequence[MultiwayJoin], files: Input, spark: SparkSession) -> list[Joined]:
    joined = []
    show(JOIN_HEADER)
    for join in joins:
        joined.append(run_join(join, files, spark))
        show(join_line(joined[-1]))
    return joined


if __name__ == "__main__":
    main()
