"""The seconds and bytes of a plan change by the length of windows, with and without what both plans have in common."""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any

import duckdb
from pyspark.sql import SparkSession

import braid
from benchmarks.moves_clock import SINK, TOPOLOGY
from benchmarks.sites import write_streams
from benchmarks.workload import Workload, one_key, uniform
from braid.hosts.spark.driver.deployed_query import DeployedQuery
from braid.model.tree import JoinTree, Leaf, Merge, merges
from braid.planning.deployment import Deployment
from braid.planning.solution.tree import TreeSolution

SITES = {"s0": "paris", "s1": "lyon", "s2": "nice", "s3": "paris"}
ORDER = ("s0", "s3", "s1", "s2")
PLACES = ("paris", "lyon", "nice")
"""The sites of the joins, from the first to the last."""

MOVES = {"the last join": ("paris", "lyon", "paris"), "all joins": ("nice", "nice", "nice")}
"""What moves, and where the joins are then. The first plan has its first two joins in common with the first of them."""


@dataclass(frozen=True)
class Change:
    """A plan change with full windows: what moved, the seconds until the old plan had ended, and the bytes copied."""

    window: int
    what: str
    seconds: float
    copied: int


def section(spark: SparkSession, short: bool, target: Path) -> list[str]:
    windows, rows = ((5, 10), 500) if short else ((10, 30, 100), 4_000)
    lines = [
        "## Windows",
        "",
        f"{rows:,} rows a second of event time in each of four streams; event time goes on at twice the pace of the "
        f"clock. The joins are at {', '.join(PLACES[:-1])} and {PLACES[-1]}. Seconds are from the decision until the "
        "old plan has ended. If only the last join moves, the other two go on as they are.",
        "",
        "| window | what moves | seconds | MB copied |",
        "|---|---|---|---|",
    ]
    for window in windows:
        for what in MOVES:
            # Spark may still be saving a snapshot of the state when a query has stopped.
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
                change = of_windows(spark, window, what, rows, Path(place))
            lines.append(f"| {change.window} s | {change.what} | {change.seconds:.1f} | {change.copied / 1e6:.2f} |")
            print(lines[-1], flush=True)
    return lines


def of_windows(spark: SparkSession, window: int, what: str, rows: int, place: Path) -> Change:
    """Change the plan when windows are full; streams go on by a second of event time every half second."""
    workload = Workload("moves", *one_key(4, uniform(window * rows)), window, window + 120, rows)
    write_streams(workload, place / "all")
    arrive = Arrival(place)
    network = braid.Network(TOPOLOGY, directory=place / "network", adapt=False)
    for name in workload.streams:
        schema = spark.read.parquet(str(place / "all" / name)).schema
        frame = spark.readStream.schema(schema).option("maxFilesPerTrigger", 5).parquet(str(place / "streams" / name))
        network.site(SITES[name], spark).stream(name, frame)
    query = network.deploy(workload.text, sink=SINK, planner="at_sink", shards=2, plan=_plan(network, workload, PLACES))
    results = _results(query, place)
    arrive.until(window + 5)
    query.process_available()
    query.replan(_plan(network, workload, MOVES[what]))
    while query.change is not None:
        query.check()
        query.look()
        arrive.until(arrive.second + 1)
        time.sleep(0.5)
    (move,) = query.history()
    query.process_available()
    results.processAllAvailable()
    results.stop()
    network.stop()
    _check_files(workload, place)
    return Change(window, what, move.seconds, move.copied)


def _plan(network: Any, workload: Workload, places: tuple[str, ...]) -> Deployment:
    """The streams joined one after the other, at these sites."""
    selectivities = dict.fromkeys(workload.condition.split(" AND "), 1 / (workload.window_seconds * workload.rows))
    known = braid.Statistics(
        rates=dict.fromkeys(workload.streams, float(workload.rows)), selectivities=selectivities, sites=SITES
    )
    query = braid.parse(workload.text, network.registry.streams())
    plan = braid.plan(query, known, TOPOLOGY, sink=SINK, planner="at_sink")
    assert isinstance(plan.solution, TreeSolution)
    streams: list[JoinTree] = [Leaf(name) for name in ORDER]
    tree = reduce(lambda joined, stream: Merge((joined, stream)), streams)
    placement = dict(zip(merges(tree), places, strict=True))
    return Deployment("by hand", replace(plan.solution, tree=tree, placement=placement))


class Arrival:
    """Files of streams that come one second of event time after the other."""

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


def _results(query: DeployedQuery, place: Path) -> Any:
    writer = query.dataframe.writeStream.format("parquet").option("path", str(place / "results"))
    return writer.option("checkpointLocation", str(place / "checkpoint")).start()


def _check_files(workload: Workload, place: Path) -> None:
    """The results are those of DuckDB over the files that have arrived."""
    connection = duckdb.connect()
    for stream in workload.streams:
        connection.execute(f"CREATE VIEW {stream} AS SELECT * FROM '{place}/streams/{stream}/*.parquet'")
    summary = f"SELECT count(*), sum(hash({', '.join(workload.outputs)})) FROM"
    expected = connection.execute(f"{summary} ({workload.offline})").fetchone()
    actual = connection.execute(f"{summary} '{place}/results/*.parquet'").fetchone()
    if actual != expected:
        raise SystemExit(f"the results are {actual}, not {expected}")
