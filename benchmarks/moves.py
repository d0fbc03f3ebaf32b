"""Plans that move between sites while a query runs on Spark: what users see of it, and what it costs.

Run by `python -m benchmarks.moves`, which writes a page and plots to docs/results; `--short` tries everything on little
data and prints the page. Sites share one Spark on two cores. Results are checked before a figure is shown: none is
missing, none comes twice.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import duckdb
import matplotlib
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console

import braid
from benchmarks import moves_simulated
from benchmarks.sites import LINKS, write_streams
from benchmarks.workload import Workload, one_key, uniform
from braid.adapt.controller import Policy
from braid.hosts.spark.driver.deployed_query import DeployedQuery
from braid.hosts.spark.driver.local_spark import local_spark

RESULTS = Path(__file__).parent.parent / "docs" / "results"
TOPOLOGY = braid.Topology.from_links(LINKS)
SITES = {"s0": "paris", "s1": "lyon", "s2": "nice", "s3": "paris"}
SINK = "lyon"
SETTLING = 5
"""The seconds after a change that still count to it: results wait where the old plan has just ended."""

EAGER = Policy(threshold=0.0, horizon=1e9)
"""Changes the plan as soon as another one is cheaper."""

console = Console()


@dataclass(frozen=True)
class Scale:
    """How much is measured."""

    rate: int = 500
    steady: int = 30
    windows: tuple[int, ...] = (10, 30, 100)
    minutes: int = 4
    rows: int = 4_000
    turns: int = 2


FULL = Scale()
SHORT = Scale(rate=100, steady=10, windows=(5, 10), minutes=3, rows=500, turns=1)


@dataclass
class Seen:
    """What came out of a query: the moment of each batch with results, and the values and latencies of its rows."""

    batches: list[tuple[float, list[float]]] = field(default_factory=list)
    values: list[int] = field(default_factory=list)

    def __call__(self, batch: DataFrame, _: int) -> None:
        rows = batch.collect()
        now = time.time()
        if rows:
            self.batches.append((now, [now - row.event_time.timestamp() for row in rows]))
            self.values += [row.v for row in rows]

    def between(self, begin: float, end: float) -> Interval:
        chosen = [(moment, latencies) for moment, latencies in self.batches if begin <= moment < end]
        moments = [begin, *(moment for moment, _ in chosen), end]
        pauses = [later - earlier for earlier, later in pairwise(moments)]
        every = [latency for _, latencies in chosen for latency in latencies]
        return Interval(median(every), max(median(latencies) for _, latencies in chosen), max(pauses))

    def check(self) -> None:
        """Every value is in one result: none is missing between the first and the last, and none comes twice."""
        if sorted(self.values) != list(range(min(self.values), max(self.values) + 1)):
            raise SystemExit(f"of {len(self.values):,} results some are missing, or come twice")


@dataclass(frozen=True)
class Interval:
    """The median seconds from a row to its result, that of the slowest batch, and the longest time without a result."""

    latency: float
    highest: float
    pause: float


@dataclass(frozen=True)
class UnderLoad:
    """A plan change of a query whose streams go on: what came out before it, during it and after it."""

    how: str
    before: Interval
    during: Interval
    after: Interval
    seconds: float
    seen: Seen
    asked: float
    ended: float


def under_load(spark: SparkSession, how: str, scale: Scale) -> UnderLoad:
    """A join of four streams at three sites, which changes its plan by hand or by itself."""
    network = braid.Network(TOPOLOGY, adapt=EAGER if how == "by itself" else False)
    rate = spark.readStream.format("rate").option("rowsPerSecond", scale.rate).load()
    for name, site in SITES.items():
        network.site(site, spark).stream(name, rate.selectExpr("timestamp AS ts", "value AS k"))
    sources = ", ".join(f"{name} [RANGE 10 SECONDS]" for name in SITES)
    condition = " AND ".join(f"s0.k = {name}.k" for name in list(SITES)[1:])
    query = network.deploy(f"SELECT s0.k AS v FROM {sources} WHERE {condition}", sink=SINK, shards=2)
    query.pin()
    seen = Seen()
    running = query.dataframe.writeStream.foreachBatch(seen).start()
    while not seen.batches:
        query.check()
        time.sleep(0.1)
    time.sleep(2 * scale.steady)
    asked = time.time()
    if how == "by itself":
        query.unpin()
        while not query.history():
            query.check()
            time.sleep(0.1)
        query.pin()
    else:
        query.replan(planner="exact", statistics=_known(scale.rate))
        query.await_change()
    (move, *_) = query.history()
    time.sleep(scale.steady)
    running.stop()
    network.stop()
    seen.check()
    begin, end = max(asked, move.asked), move.ended
    # The first batches after a start have waited for Spark, so the last ones before the change are the steady state.
    before = seen.between(begin - scale.steady, begin)
    during, after = seen.between(begin, end + SETTLING), seen.between(end + SETTLING, end + scale.steady)
    return UnderLoad(how, before, during, after, end - begin, seen, begin, end)


def _known(rate: int) -> braid.Statistics:
    pairs = {f"s0.k = {name}.k": 1 / (10 * rate) for name in list(SITES)[1:]}
    return braid.Statistics(rates=dict.fromkeys(SITES, float(rate)), selectivities=pairs)


@dataclass(frozen=True)
class Change:
    """A plan change with full windows: what moved, the seconds until the old plan had ended, and the bytes copied."""

    window: int
    what: str
    seconds: float
    copied: int


def of_windows(spark: SparkSession, window: int, what: str, scale: Scale, place: Path) -> Change:
    """Change the plan when windows are full; streams go on by a second of event time every half second."""
    workload = Workload("moves", *one_key(4, uniform(window * scale.rows)), window, window + 120, scale.rows)
    write_streams(workload, place / "all")
    arrive = Arrival(place)
    network, query = _deployed(spark, workload, place)
    seen_rows = _results(query, place)
    arrive.until(window + 5)
    query.process_available()
    if what == "one join of three":
        query.move("s0 ⋈ s1 ⋈ s2 ⋈ s3", "nice")
    else:
        query.replan(planner="at_sink", statistics=_known(scale.rows))
    while query.change is not None:
        query.check()
        query.look()
        arrive.until(arrive.second + 1)
        time.sleep(0.5)
    (move,) = query.history()
    query.process_available()
    seen_rows.processAllAvailable()
    seen_rows.stop()
    network.stop()
    _check_files(workload, place)
    return Change(window, what, move.seconds, move.copied)


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


def _deployed(spark: SparkSession, workload: Workload, place: Path) -> tuple[Any, DeployedQuery]:
    network = braid.Network(TOPOLOGY, directory=place / "network", adapt=False)
    for name in workload.streams:
        schema = spark.read.parquet(str(place / "all" / name)).schema
        frame = spark.readStream.schema(schema).option("maxFilesPerTrigger", 5).parquet(str(place / "streams" / name))
        network.site(SITES[name], spark).stream(name, frame)
    known = braid.Statistics(
        rates=dict.fromkeys(workload.streams, float(workload.rows)),
        selectivities=dict.fromkeys(workload.condition.split(" AND "), 1 / (workload.window_seconds * workload.rows)),
    )
    query = network.deploy(workload.text, sink=SINK, planner="exact", statistics=known, shards=2)
    return network, query


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


def back_and_forth(spark: SparkSession, moving: bool, scale: Scale, place: Path) -> float:
    """Rows per second of a join with windows of 20 s, which moves at each minute of event time, or stays."""
    seconds = 60 * scale.minutes
    workload = Workload("D-CAPE", *one_key(2, uniform(20 * scale.rows)), 20, seconds, scale.rows)
    write_streams(workload, place / "all")
    arrive = Arrival(place)
    network, query = _deployed(spark, workload, place)
    results = _results(query, place)
    arrive.until(20)
    query.process_available()
    started = time.perf_counter()
    for minute in range(scale.minutes):
        arrive.until(60 * (minute + 1))
        if moving and minute:
            query.move("s0 ⋈ s1", ("lyon", "paris")[minute % 2])
        query.process_available()
        results.processAllAvailable()
    elapsed = time.perf_counter() - started
    if moving:
        assert len(query.history()) >= scale.minutes - 2
    results.stop()
    network.stop()
    _check_files(workload, place)
    return 2 * (seconds - 20) * scale.rows / elapsed


@dataclass(frozen=True)
class Measured:
    """Everything that the page shows."""

    loads: list[UnderLoad]
    changes: list[Change]
    staying: list[float]
    moving: list[float]
    scale: Scale
    adaptive: list[moves_simulated.Comparison]

    def page(self) -> str:
        return "\n".join([*self._loads(), *self._changes(), *self._back_and_forth(), *self._adaptive()]) + "\n"

    def _loads(self) -> list[str]:
        lines = [
            "# Plans that move (`python -m benchmarks.moves`)",
            "",
            f"A join of four streams at three sites that share one Spark, {4 * self.scale.rate:,} rows a second, "
            "windows of 10 s. The plan changes from everything at the sink to the cheapest one. Every result came, and "
            "came once.",
            "",
            f"Latencies are medians of rows, until {SETTLING} s after the change; the highest is that of the slowest "
            "batch.",
            "",
            "| change | seconds | latency before | during | after | during / before | highest | longest time without a "
            "result before | during |",
            "|---|---|---|---|---|---|---|---|---|",
        ]
        for load in self.loads:
            latencies = [interval.latency for interval in (load.before, load.during, load.after)]
            shown = " | ".join(f"{latency:.2f}" for latency in latencies)
            lines.append(
                f"| {load.how} | {load.seconds:.1f} | {shown} | {load.during.latency / load.before.latency:.2f} | "
                f"{load.during.highest:.2f} | {load.before.pause:.2f} | {load.during.pause:.2f} |"
            )
        return [*lines, "", "![Latency over time](moves.png)"]

    def _changes(self) -> list[str]:
        lines = [
            "",
            "## Windows",
            "",
            f"{self.scale.rows:,} rows a second of event time in each of four streams; event time goes on at twice the "
            "pace of the clock. Seconds are from the decision until the old plan has ended.",
            "",
            "| window | what moves | seconds | MB copied |",
            "|---|---|---|---|",
        ]
        for change in self.changes:
            lines.append(f"| {change.window} s | {change.what} | {change.seconds:.1f} | {change.copied / 1e6:.2f} |")
        return lines

    def _back_and_forth(self) -> list[str]:
        staying, moving = median(self.staying), median(self.moving)
        return [
            "",
            "## Back and forth",
            "",
            f"A join with windows of 20 s moves between two sites at each of {self.scale.minutes - 1} minutes of event "
            f"time (figure 36 of the D-CAPE paper): {moving:,.0f} rows a second, and {staying:,.0f} if it stays: "
            f"{moving / staying:.2f} (medians of {len(self.moving)} runs each). Rows come as fast as they are taken: a "
            f"minute of event time passes in {60 * 2 * self.scale.rows / staying:.0f} s of the clock. A change takes "
            "about as long, and two plans run meanwhile.",
        ]

    def _adaptive(self) -> list[str]:
        lines = [
            "",
            "## When prices or rates change",
            "",
            "Simulated. The plan follows by itself, or stays. Cost is that of the second half, after the change.",
            "",
            "| what changes | fixed | adaptive | times less |",
            "|---|---|---|---|",
        ]
        for found in self.adaptive:
            lines.append(
                f"| {found.what} | {found.fixed_after:.3g} {found.unit} | {found.adaptive_after:.3g} {found.unit} | "
                f"{found.fixed_after / found.adaptive_after:.1f} |"
            )
        return [*lines, "", "![Cost over time](moves_adaptive.png)"]

    def draw(self, directory: Path) -> None:
        matplotlib.use("Agg")
        from matplotlib import pyplot

        figure, all_axes = pyplot.subplots(len(self.loads), 1, figsize=(8, 5), layout="constrained", squeeze=False)
        for axes, load in zip(all_axes[:, 0], self.loads, strict=True):
            shown = [(moment - load.asked, median(found)) for moment, found in load.seen.batches]
            shown = [(moment, latency) for moment, latency in shown if moment > -self.scale.steady]
            axes.plot(*zip(*shown, strict=True), marker=".")
            axes.axvspan(0, load.ended - load.asked, alpha=0.2, label=f"the plan changes, {load.how}")
            axes.set(xlabel="seconds", ylabel="latency, s", ylim=(0, None))
            axes.legend()
        figure.savefig(directory / "moves.png", dpi=110, metadata={"Software": None})
        moves_simulated.draw(self.adaptive, directory / "moves_adaptive.png")


def progress(name: str, call: Callable[[], Any]) -> Any:
    with console.status(name):
        outcome = call()
    shown = outcome if isinstance(outcome, float | Change) else ""
    console.print(f"{name}: done {shown}", highlight=False)
    return outcome


def main(arguments: list[str]) -> None:
    scale = SHORT if "--short" in arguments else FULL
    spark = local_spark(settings={"spark.driver.memory": "4g"}, log=Path(tempfile.gettempdir()) / "moves.log")
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        loads = [progress(how, lambda how=how: under_load(spark, how, scale)) for how in ("by hand", "by itself")]
        changes = []
        for window in scale.windows:
            for what in ("one join of three", "all joins"):
                place = directory / f"{window} {what}"
                title = f"windows of {window} s, {what}"
                changes.append(progress(title, lambda: of_windows(spark, window, what, scale, place)))  # noqa: B023
        rates: dict[bool, list[float]] = {False: [], True: []}
        for turn in range(scale.turns + 1):
            for moving, measured in rates.items():
                place = directory / f"{turn} {moving}"
                title = f"back and forth, turn {turn}, {'moving' if moving else 'staying'}"
                measured.append(progress(title, lambda: back_and_forth(spark, moving, scale, place)))  # noqa: B023
        adaptive = progress("simulated", moves_simulated.comparisons)
        # The first turn warms Java.
        measured = Measured(loads, changes, rates[False][1:], rates[True][1:], scale, adaptive)
        target = directory if scale is SHORT else RESULTS
        measured.draw(target)
        if scale is SHORT:
            print(measured.page())
        else:
            (RESULTS / "moves.md").write_text(measured.page())


if __name__ == "__main__":
    main(sys.argv[1:])
