"""Plans that adapt compared with plans that stay, while the streams change. Run by `python -m benchmarks.adaptive`.

- Figure 4 of the NOS paper: 4- and 8-way joins on one key, where the rate of one stream switches between 50 and 200
  (hundreds of rows per second). In one process and on Spark.
- A flip: the rows of a hub match hundreds of rows of one stream and few of another; half-way the two streams exchange
  their roles. In one process and on Spark.
- Plan changes by hand on Spark, between join trees and between probe sequences: their effect on the time of a
  micro-batch.

Results are compared before a figure is shown.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pyspark.sql import SparkSession
from rich.console import Console

import braid
from benchmarks.shifting import Shifting, flip, rates, steady
from benchmarks.spark import check_equal
from braid.adapt.adaptation import Adaptation
from braid.engine.engine import Engine
from braid.engine.segment import Segment
from braid.hosts.spark.driver.local_spark import local_spark
from braid.hosts.spark.driver.query import SparkQuery
from braid.language import parse
from braid.model.plan import Plan, Written
from braid.model.stream import Stream
from braid.planning.lowering.one_site import lower
from braid.runtime.observing import Watch
from braid.testing import assert_same_rows

RESULTS = Path(__file__).parent.parent / "docs" / "results"
REMARKS = (
    "A rate that switches between half and twice the rate of the others causes less than a tenth of the work, so there "
    "is little to gain. In one process the search for a better plan runs between the batches and costs part of that "
    "gain. On Spark, batches of so few rows are mostly fixed costs, which vary by a tenth to a third from batch to "
    "batch under any plan. After the flip one batch runs under the old plan and shows the change. On Spark a second "
    "batch does, because it has begun by then. In the next one the new order is on trial."
)

PLANS = {"plan stays": False, "plan adapts": True}
"""The variants that are compared, and whether their plan adapts."""

ROUNDS = 3
"""How often the variants run in turn in one process; the fastest run of each counts."""

QUICK_SECONDS = 30.0
"""A variant that takes longer than this is run only once, because noise matters less."""

HAND = "hand"
"""The argument for plan changes by hand; other arguments are words of workload names."""

WARM_UP = 20
"""Batches before the first plan change by hand; they fill the windows twice and are not measured."""

CHANGE_INTERVAL = 8
"""Batches between two plan changes by hand."""

console = Console()


@dataclass
class Course:
    """The measurements of a run, batch by batch. `changes` are the batches before which the plan changed."""

    seconds: list[float] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    work: list[int] = field(default_factory=list)
    changes: list[int] = field(default_factory=list)
    watching: list[float] = field(default_factory=list)
    """Seconds for statistics, in the slowest shard and on the driver together."""

    @property
    def rates(self) -> list[float]:
        return [rows / seconds for rows, seconds in zip(self.rows, self.seconds, strict=True)]

    def rate_since(self, batch: int) -> float:
        return sum(self.rows[batch:]) / sum(self.seconds[batch:])


def run_locally(workload: Shifting, adapt: bool, batches: int | None = None) -> tuple[Course, pa.Table]:
    """Run a workload batch by batch in one engine."""
    rows = list(workload.rows(batches))
    query = parse(workload.text, {name: Stream(name, batch.schema, "ts") for name, batch in rows[0].items()})
    plan = Plan.of(query, workload.first)
    engine, adaptation = Engine(lower(plan)), Adaptation(plan, adapt)
    course, results = Course(), []
    for number, batch in enumerate(rows):
        watermark = min(int(stream.column("ts")[0].value) for stream in batch.values() if stream.num_rows)
        segments = [Segment(name, stream, watermark) for name, stream in batch.items()]
        watch, started = Watch(engine), time.perf_counter()
        results += engine.step(segments)
        observation = watch.observe(segments)
        change = adaptation.observe(observation, number * 1.0, number)
        if change is not None:
            engine.change(lower(change.after), None if change.against is None else lower(change.against))
            course.changes.append(number + 1)
        course.seconds.append(time.perf_counter() - started)
        course.rows.append(observation.rows(query.aliases))
        course.work.append(observation.work)
    results += engine.finish()
    return course, pa.Table.from_batches(results, engine.schema)


def write_files(workload: Shifting, directory: Path) -> None:
    for number, batch in enumerate(workload.rows()):
        for name, rows in batch.items():
            (directory / name).mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.Table.from_batches([rows]), directory / name / f"{number:05d}.parquet")


def run_on_spark(workload: Shifting, spark: SparkSession, directory: Path, target: Path, adapt: bool) -> Course:
    """Run a workload on Spark, with the files of each batch as one micro-batch, into a Parquet sink."""
    session = braid.Session(spark, adapt=adapt)
    declare_streams(session, spark, directory)
    query = session.sql(workload.text, plan=workload.first)
    with tempfile.TemporaryDirectory() as checkpoint:
        started = parquet_writer(query, target, checkpoint).trigger(availableNow=True).start()
        started.awaitTermination()
        course = Course()
        for progress in started.recentProgress[: workload.batches]:
            course.rows.append(sum(source.numInputRows for source in progress.sources))
            course.seconds.append(progress.durationMs["triggerExecution"] / 1_000)
        course.changes = [change.batch + 1 for change in query.history()]
    return course


def declare_streams(session: braid.Session, spark: SparkSession, directory: Path) -> None:
    """Declare each subdirectory as a stream, with one file per micro-batch."""
    for stream in sorted(path for path in directory.iterdir() if path.is_dir()):
        reader = spark.readStream.schema(spark.read.parquet(str(stream)).schema)
        session.stream(stream.name, reader.option("maxFilesPerTrigger", 1).parquet(str(stream)))


def parquet_writer(query: Any, target: Path, checkpoint: str) -> Any:
    writer = query.dataframe.drop("event_time").writeStream.format("parquet").option("path", str(target))
    return writer.option("checkpointLocation", checkpoint)


@dataclass(frozen=True)
class Forced:
    """Two plans between which a query is changed by hand."""

    name: str
    plans: tuple[Written, Written]


FORCED = (
    Forced(
        "probe sequences",
        tuple(  # type: ignore[arg-type]
            {head: tuple(name for name in order if name != head) for head in order} for order in ("abcd", "dcba")
        ),
    ),
    Forced("trees", (((("a", "b"), "c"), "d"), ((("d", "c"), "b"), "a"))),
)


def run_forced(workload: Shifting, spark: SparkSession, directory: Path, target: Path, forced: Forced | None) -> Course:
    """Run a workload under load, with the plan changed by hand after WARM_UP batches and then in CHANGE_INTERVAL."""
    session = braid.Session(spark, adapt=False)
    declare_streams(session, spark, directory)
    query = session.sql(workload.text, plan=workload.first if forced is None else forced.plans[0])
    course = Course()
    receiving = time_receiving(query)
    with tempfile.TemporaryDirectory() as checkpoint:
        started = parquet_writer(query, target, checkpoint).trigger(availableNow=True).start()
        while forced is not None and not started.awaitTermination(0.05):
            # Not Spark's `lastProgress`: polling it uses so much of a core that the batches would be slower.
            done = (query.progress() or {"batch": -1})["batch"] + 1
            if done >= WARM_UP + CHANGE_INTERVAL * len(course.changes):
                query.replan(forced.plans[(len(course.changes) + 1) % 2])
                course.changes.append(done)
        started.awaitTermination()
        for progress in started.recentProgress[: workload.batches]:
            course.rows.append(sum(source.numInputRows for source in progress.sources))
            course.seconds.append(progress.durationMs["triggerExecution"] / 1_000)
        watching = [report["watch_seconds"] for report in query.take_news()]
        course.watching = [shard + driver for shard, driver in zip(watching, receiving, strict=True)]
    return course


def time_receiving(query: SparkQuery) -> list[float]:
    """A list that will receive the seconds that the driver takes for each report from now on."""
    seconds: list[float] = []
    receive = query.receive

    def timed(batch: int, reports: Sequence[str], started: float) -> None:
        begin = time.perf_counter()
        receive(batch, reports, started)
        if reports:
            seconds.append(time.perf_counter() - begin)

    query.receive = timed  # type: ignore[method-assign]
    return seconds


def force(spark: SparkSession, axes: Axes) -> list[str]:
    """Measure plan changes by hand, draw them, and return the lines of the table."""
    workload = steady()
    lines = [
        "| plans | changes asked for before batch | median batch, s | slowest batch / median "
        "| slowest of three batches from a change on / median | statistics, of a batch |",
        "|---|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        write_files(workload, directory / "input")
        with console.status("changes by hand on Spark: warming up Java"):
            for forced in FORCED:
                run_forced(workload, spark, directory / "input", directory / f"warm {forced.name}", forced)
        unchanged = None
        for forced in (None, *FORCED):
            name = "never changed" if forced is None else forced.name
            with console.status(f"changes by hand on Spark: {name}"):
                course = run_forced(workload, spark, directory / "input", directory / name, forced)
            if forced is None:
                unchanged = directory / name
            else:
                check_equal(unchanged, directory / name)
            full = course.seconds[WARM_UP:]
            median = float(np.median(full))
            slowest = max((max(course.seconds[change : change + 3]) for change in course.changes), default=None)
            after_change = "-" if slowest is None else f"{slowest / median:.2f}"
            changes = ", ".join(str(change) for change in course.changes) or "-"
            watching = float(np.median(course.watching[WARM_UP:])) / median
            lines.append(
                f"| {name} | {changes} | {median:.2f} | {max(full) / median:.2f} | {after_change} | {watching:.1%} |"
            )
            console.print(lines[-1], markup=False)
            (drawn,) = axes.plot(range(WARM_UP, workload.batches), full, marker=".", label=name)
            for change in course.changes:
                axes.axvline(change, color=drawn.get_color(), linestyle=":", linewidth=0.8)
    axes.set(
        title="changes by hand, on Spark", ylabel="seconds a micro-batch", xlabel="batch; dotted: a change is asked for"
    )
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=7)
    return lines


def draw(axes: Axes, workload: Shifting, courses: dict[str, Course], unit: str) -> None:
    colours = {"plan stays": "gray", "plan adapts": "tab:blue"}
    for name, course in courses.items():
        values = course.rates if unit == "rows/s" else [w / r for w, r in zip(course.work, course.rows, strict=True)]
        axes.step(range(len(values)), values, where="post", color=colours[name], label=name)
    for shift in workload.shifts:
        axes.axvline(shift, color="tab:red", linewidth=0.8)
    for change in courses["plan adapts"].changes:
        axes.axvline(change, color="tab:blue", linestyle=":")
    axes.set_ylim(bottom=0)
    axes.set_ylabel(unit)
    axes.set_title(workload.name, fontsize=9)
    axes.legend(fontsize=7)


def compare_locally(workload: Shifting) -> dict[str, Course]:
    courses: dict[str, list[Course]] = {name: [] for name in PLANS}
    tables: dict[str, pa.Table] = {}
    with console.status(f"{workload.name}, in one process"):
        run_locally(workload, True, 3)  # The first run compiles the kernels.
        for _ in range(ROUNDS):
            for name, adapt in PLANS.items():
                course, tables[name] = run_locally(workload, adapt)
                courses[name].append(course)
            if any(sum(runs[0].seconds) > QUICK_SECONDS for runs in courses.values()):
                break
    assert_same_rows(*tables.values())
    return {name: min(runs, key=lambda course: sum(course.seconds)) for name, runs in courses.items()}


def compare_on_spark(workload: Shifting, spark: SparkSession) -> dict[str, Course]:
    courses = {}
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        write_files(workload, directory / "input")
        with console.status(f"{workload.name} on Spark: warming up the JVM"):
            run_on_spark(workload, spark, directory / "input", directory / "warm", adapt=True)
        for name, adapt in PLANS.items():
            with console.status(f"{workload.name} on Spark: {name}"):
                courses[name] = run_on_spark(workload, spark, directory / "input", directory / name, adapt)
        check_equal(directory / "plan stays", directory / "plan adapts")
    return courses


def line(where: str, workload: Shifting, courses: dict[str, Course]) -> str:
    """One line of the table, with rates since the first shift."""
    stays, adapts = (courses[name].rate_since(workload.shifts[0]) for name in ("plan stays", "plan adapts"))
    work = "-"
    if courses["plan stays"].work:
        before, after = (sum(courses[name].work[workload.shifts[0] :]) for name in ("plan stays", "plan adapts"))
        work = f"{after / before:.2f}"
    changes = ", ".join(str(change) for change in courses["plan adapts"].changes)
    text = f"| {workload.name} | {where} | {stays:,.0f} | {adapts:,.0f} | {adapts / stays:.2f}x | {work} | {changes} |"
    console.print(text, markup=False)
    return text


def compare(spark: SparkSession, words: Sequence[str]) -> None:
    """Compare plans that adapt with plans that stay. The page is written if all workloads were run."""
    workloads = [rates(4), rates(8), flip()]
    chosen = [workload for workload in workloads if not words or any(word in workload.name for word in words)]
    lines = [
        "| workload | where | plan stays, rows/s | plan adapts, rows/s | gain | work, adapts / stays "
        "| changes before batch |",
        "|---|---|---|---|---|---|---|",
    ]
    figure = Figure(figsize=(13, 3.2 * max(1, len(chosen))), layout="constrained")
    for row, workload in enumerate(chosen):
        work, local, cluster = (figure.add_subplot(len(chosen), 3, 3 * row + column) for column in (1, 2, 3))
        courses = compare_locally(workload)
        lines.append(line("one process", workload, courses))
        draw(work, workload, courses, "probes and matches for each row in")
        draw(local, workload, courses, "rows/s")
        courses = compare_on_spark(workload, spark)
        lines.append(line("Spark", workload, courses))
        draw(cluster, workload, courses, "rows/s")
        cluster.set_title(f"{workload.name}, on Spark", fontsize=9)
        work.set_xlabel("batch; red: the streams change, dotted: the plan does")
    if len(chosen) == len(workloads):
        table = "\n".join(lines)
        write(
            "adaptive",
            figure,
            "# Plans that adapt (`python -m benchmarks.adaptive`)\n\n"
            "Rates are input rows per second since the streams first changed; on Spark, of whole micro-batches. "
            "Both plans gave the same results. [Changes by hand](changes.md) have their own page.\n\n"
            f"{table}\n\n{REMARKS}\n\n![Work and rates over time](adaptive.png)\n",
        )


def change_by_hand(spark: SparkSession) -> None:
    figure = Figure(figsize=(13, 3.2), layout="constrained")
    table = "\n".join(force(spark, figure.add_subplot()))
    write(
        "changes",
        figure,
        "# Plan changes by hand, under load (`python -m benchmarks.adaptive hand`)\n\n"
        "Four streams of 50,000 rows per batch each on Spark, with full windows; two plans alternate. The results were "
        "the same as without a change. Statistics are collected in every shard and sent to the driver with each "
        "micro-batch; the last column is the time for both.\n\n"
        f"{table}\n\n![Seconds of each micro-batch](changes.png)\n",
    )


def write(name: str, figure: Figure, page: str) -> None:
    figure.savefig(RESULTS / f"{name}.png", dpi=110, metadata={"Software": None})
    (RESULTS / f"{name}.md").write_text(page)


def main() -> None:
    arguments = sys.argv[1:]
    spark = local_spark(settings={"spark.driver.memory": "6g", "spark.sql.streaming.numRecentProgressUpdates": "1000"})
    spark.sparkContext.setLogLevel("ERROR")
    if arguments != [HAND]:
        compare(spark, [word for word in arguments if word != HAND])
    if not arguments or HAND in arguments:
        change_by_hand(spark)
    spark.stop()


if __name__ == "__main__":
    main()
