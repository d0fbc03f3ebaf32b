"""The seconds and bytes of a plan change by the length of windows, with and without what both plans have in common."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import braid
from benchmarks.moves_clock import SINK, TOPOLOGY
from benchmarks.moves_files import Arrival, check_results, write_results
from benchmarks.sites import write_streams
from benchmarks.workload import Workload, one_key, uniform
from braid.model.tree import JoinTree, Leaf, Merge, merges
from braid.planning.deployment import Deployment
from braid.planning.solution.tree import TreeSolution

SITES = {"s0": "paris", "s1": "lyon", "s2": "nice", "s3": "paris"}
ORDER = ("s0", "s3", "s1", "s2")
PLACES = ("paris", "paris", "lyon")
"""The sites of the joins, from the first to the last."""

MOVES = {"the last join": ("paris", "paris", "nice"), "all joins": ("nice", "nice", "nice")}
"""What moves, and where the joins are then. If only the last join moves, Paris does the same for both plans."""


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
    changes = []
    for window in windows:
        for what in MOVES:
            # Spark may still be saving a snapshot of the state when a query has stopped.
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
                change = of_windows(spark, window, what, rows, Path(place))
            lines.append(f"| {change.window} s | {change.what} | {change.seconds:.1f} | {change.copied / 1e6:.2f} |")
            print(lines[-1], flush=True)
            changes.append(change)
    return [*lines, "", _compared(changes)]


def _compared(changes: list[Change]) -> str:
    """How seconds and bytes grow with windows, in words."""
    (smallest, small_all), (longest, long_all) = changes[:2], changes[-2:]
    return (
        f"From windows of {smallest.window} s to {longest.window} s, bytes grow "
        f"{longest.copied / smallest.copied:.1f} times if the last join moves and "
        f"{long_all.copied / small_all.copied:.1f} times if all do; seconds grow "
        f"{longest.seconds / smallest.seconds:.1f} and {long_all.seconds / small_all.seconds:.1f} times. At "
        f"{longest.window} s, moving all joins copies {long_all.copied / longest.copied:.1f} times the bytes of moving "
        "the last one, whose inputs are joined already."
    )


def of_windows(spark: SparkSession, window: int, what: str, rows: int, place: Path) -> Change:
    """Change the plan when windows are full; streams go on by a second of event time every half second."""
    workload = Workload("moves", *one_key(4, uniform(window * rows)), window, window + 120, rows)
    write_streams(workload, place / "all")
    arrive = Arrival(place)
    network = braid.Network(TOPOLOGY, directory=place / "network", adapt=False)
    for name in workload.streams:
        network.site(SITES[name], spark).stream(name, arrive.read(spark, name, most_files=5))
    query = network.deploy(workload.text, sink=SINK, planner="at_sink", shards=2, plan=_plan(network, workload, PLACES))
    results = write_results(query, place)
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
    check_results(workload.offline, list(workload.streams), list(workload.outputs), place)
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
