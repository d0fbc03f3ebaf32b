"""Plans that adapt beside plans that stay, while the streams change. Run by `python -m benchmarks.adaptive`.

First figure 4 of the NOS paper: 4- and 8-way joins on one key, the rate of one stream going back and forth between 50
and 200 (hundreds of rows a second). Then a flip: a hub whose rows match hundreds of rows of one stream and few of
another, until half-way it is the other way round. Both in one process and on Spark. Last, changes of plan by hand on
Spark, between trees that keep combinations and between probe sequences, and what they do to the time of a micro-batch.
Results are compared before a figure is shown.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
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
SECOND = 1_000_000
REMARKS = (
    "A rate that switches between a half and twice that of the others makes less than a tenth of the work, so that "
    "there is little to gain; in one process the search for a better plan runs between the batches and takes some of "
    "that back. "
    "On Spark batches of so few rows are mostly fixed costs, which differ by a tenth to a third from one to the next, "
    "with whichever plan. "
    "After the flip two batches run under the old plan, until they have told the same story; on Spark a third, "
    "since it has begun by the time the story is told."
)
PLANS = {"plan stays": False, "plan adapts": True}
"""What is compared, and whether it adapts."""
ROUNDS = 3
"""In one process both take turns so many times, and of each the quickest run counts."""
QUICK = 30.0
"""What takes longer than so many seconds is run once: a moment's noise makes no difference to it."""
HAND = "hand"
"""The word for changes by hand on the command line, beside words of the workloads' names."""
console = Console()

Batch = dict[str, pa.RecordBatch]


@dataclass(frozen=True)
class Shifting:
    """A workload that changes as it goes: the rows of each batch are made by its number."""

    name: str
    text: str
    batches: int
    shifts: tuple[int, ...]
    """The batches from which on the streams are different."""
    first: Written
    """The best plan for the time before the first shift."""
    make: Callable[[np.random.Generator, int], Batch]

    def rows(self, batches: int | None = None) -> Iterator[Batch]:
        """All batches, or only so many."""
        generator = np.random.default_rng(7)
        return (self.make(generator, number) for number in range(batches or self.batches))


@dataclass
class Course:
    """What a run was like, batch by batch."""

    seconds: list[float] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    work: list[int] = field(default_factory=list)
    changes: list[int] = field(default_factory=list)
    watching: list[float] = field(default_factory=list)
    """Seconds that statistics took, in the slowest shard and on the driver."""

    @property
    def rates(self) -> list[float]:
        return [rows / seconds for rows, seconds in zip(self.rows, self.seconds, strict=True)]

    def rate_since(self, batch: int) -> float:
        return sum(self.rows[batch:]) / sum(self.seconds[batch:])


def rates(streams: int, batches: int = 40, period: int = 10, scale: int = 100) -> Shifting:
    """Figure 4: each batch is a second; `s0` brings 50 or 200 times `scale` rows in it, the others 100 times."""
    names = [f"s{number}" for number in range(streams)]
    domain = 1_000 * scale
    shown = ", ".join(f"{name}.row AS {name}_row" for name in names)
    condition = " AND ".join(f"{left}.k = {right}.k" for left, right in pairwise(names))

    def make(generator: np.random.Generator, number: int) -> Batch:
        varied = (200 if number // period % 2 else 50) * scale
        return {
            name: _batch(
                generator, number, 1, varied if name == "s0" else 100 * scale, k=partial(generator.integers, 0, domain)
            )
            for name in names
        }

    # What is rarest is probed first: s0 as long as it is slow.
    first = {head: tuple(name for name in names if name != head) for head in names}
    return Shifting(
        f"{streams}-way join, one rate switching",
        f"SELECT {shown} FROM {', '.join(f'{name} [RANGE 10 SECONDS]' for name in names)} WHERE {condition}",
        batches,
        tuple(range(period, batches, period)),
        first,
        make,
    )


def flip(batches: int = 30, seconds: int = 5, hub: int = 20_000, fan: int = 4_000) -> Shifting:
    """A hub with two keys: values of the one are among few and match `fan` rows each, of the other almost none."""
    leaf, window, few, many = 640, 50, 4, 400_000_000
    half = batches // 2

    def mixed(generator: np.random.Generator, count: int) -> np.ndarray[Any, Any]:
        often = generator.random(count) < fan * few / (leaf * window)
        return np.where(often, generator.integers(0, few, count), generator.integers(few, many, count))

    def make(generator: np.random.Generator, number: int) -> Batch:
        rare, frequent = partial(generator.integers, few, many), partial(generator.integers, 0, few)
        x, y = (rare, frequent) if number < half else (frequent, rare)
        return {
            "hub": _batch(generator, number, seconds, hub, x=x, y=y),
            "a": _batch(generator, number, seconds, leaf, x=partial(mixed, generator)),
            "b": _batch(generator, number, seconds, leaf, y=partial(mixed, generator)),
        }

    return Shifting(
        "selectivities that flip",
        "SELECT hub.row AS hub_row, a.row AS a_row, b.row AS b_row FROM hub [RANGE 1 SECOND], "
        f"a [RANGE {window} SECONDS], b [RANGE {window} SECONDS] WHERE hub.x = a.x AND hub.y = b.y",
        batches,
        (half,),
        {"hub": ("a", "b"), "a": ("hub", "b"), "b": ("hub", "a")},
        make,
    )


def _batch(generator: np.random.Generator, number: int, seconds: int, rate: int, **keys: Any) -> pa.RecordBatch:
    count = rate * seconds
    times = np.sort(generator.integers(0, seconds * SECOND, count)) + number * seconds * SECOND
    columns = {
        "ts": pa.array(times, pa.timestamp("us", "UTC")),
        "row": pa.array(times * 1_000 + np.arange(count) % 1_000),
    }
    return pa.RecordBatch.from_pydict(columns | {name: pa.array(draw(count)) for name, draw in keys.items()})


def run_locally(workload: Shifting, adapt: bool, batches: int | None = None) -> tuple[Course, pa.Table]:
    """Batch by batch through one engine."""
    rows = list(workload.rows(batches))
    query = parse(workload.text, {name: Stream(name, batch.schema, "ts") for name, batch in rows[0].items()})
    plan = Plan.of(query, workload.first)
    engine, adaptation = Engine(lower(plan)), Adaptation(plan, adapt)
    course, results = Course(), []
    for number, batch in enumerate(rows):
        begin = min(int(part.column("ts")[0].value) for part in batch.values() if part.num_rows)
        segments = [Segment(name, part, begin) for name, part in batch.items()]
        watch, started = Watch(engine), time.perf_counter()
        results += engine.step(segments)
        seen = watch.observe(segments)
        change = adaptation.observe(seen, number * 1.0, number)
        if change is not None:
            engine.change(lower(change.after))
            course.changes.append(number + 1)
        course.seconds.append(time.perf_counter() - started)
        course.rows.append(seen.rows(query.aliases))
        course.work.append(seen.work)
    results += engine.finish()
    return course, pa.Table.from_batches(results, engine.schema)


def write_files(workload: Shifting, place: Path) -> None:
    for number, batch in enumerate(workload.rows()):
        for name, rows in batch.items():
            (place / name).mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.Table.from_batches([rows]), place / name / f"{number:05d}.parquet")


def run_on_spark(workload: Shifting, spark: SparkSession, place: Path, target: Path, adapt: bool) -> Course:
    """The files of each batch as one micro-batch, to a Parquet sink."""
    session = braid.Session(spark, adapt=adapt)
    _read(session, spark, place)
    query = session.sql(workload.text, plan=workload.first)
    with tempfile.TemporaryDirectory() as checkpoint:
        started = _write(query, target, checkpoint).trigger(availableNow=True).start()
        started.awaitTermination()
        course = Course()
        for progress in started.recentProgress[: workload.batches]:
            course.rows.append(sum(source.numInputRows for source in progress.sources))
            course.seconds.append(progress.durationMs["triggerExecution"] / 1_000)
        course.changes = [change.batch + 1 for change in query.history()]
    return course


def _read(session: braid.Session, spark: SparkSession, place: Path) -> None:
    """Every directory is a stream, and every file in it what comes in a micro-batch."""
    for directory in sorted(path for path in place.iterdir() if path.is_dir()):
        reader = spark.readStream.schema(spark.read.parquet(str(directory)).schema)
        session.stream(directory.name, reader.option("maxFilesPerTrigger", 1).parquet(str(directory)))


def _write(query: Any, target: Path, checkpoint: str) -> Any:
    writer = query.dataframe.drop("event_time").writeStream.format("parquet").option("path", str(target))
    return writer.option("checkpointLocation", checkpoint)


@dataclass(frozen=True)
class Forced:
    """Plans that take turns, every so many batches."""

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
EVERY = 8
"""Batches between two changes by hand."""


def steady(batches: int = 48, rows: int = 50_000) -> Shifting:
    """Four streams on one key that never change, with full windows after ten batches."""
    names = "abcd"

    def make(generator: np.random.Generator, number: int) -> Batch:
        return {name: _batch(generator, number, 1, rows, k=partial(generator.integers, 0, 10 * rows)) for name in names}

    condition = " AND ".join(f"{left}.k = {right}.k" for left, right in pairwise(names))
    shown = ", ".join(f"{name}.row AS {name}_row" for name in names)
    return Shifting(
        "changes by hand",
        f"SELECT {shown} FROM {', '.join(f'{name} [RANGE 10 SECONDS]' for name in names)} WHERE {condition}",
        batches,
        (),
        FORCED[0].plans[0],
        make,
    )


def run_forced(workload: Shifting, spark: SparkSession, place: Path, target: Path, forced: Forced | None) -> Course:
    """Under load, with the plan changed by hand every so many batches once the windows have filled up twice."""
    session = braid.Session(spark, adapt=False)
    _read(session, spark, place)
    query = session.sql(workload.text, plan=workload.first if forced is None else forced.plans[0])
    course = Course()
    receiving = time_receiving(query)
    with tempfile.TemporaryDirectory() as checkpoint:
        started = _write(query, target, checkpoint).trigger(availableNow=True).start()
        while forced is not None and not started.awaitTermination(0.05):
            # Spark's own `lastProgress` takes so much of a core that batches asked about would be slower for it.
            done = (query.progress() or {"batch": -1})["batch"] + 1
            if done >= 20 + EVERY * len(course.changes):
                query.replan(forced.plans[(len(course.changes) + 1) % 2])
                course.changes.append(done)
        started.awaitTermination()
        for progress in started.recentProgress[: workload.batches]:
            course.rows.append(sum(source.numInputRows for source in progress.sources))
            course.seconds.append(progress.durationMs["triggerExecution"] / 1_000)
        watching = [report["watch_seconds"] for report in query.take_news()]
        course.watching = [sum(parts) for parts in zip(watching, receiving, strict=True)]
    return course


def time_receiving(query: SparkQuery) -> list[float]:
    """The seconds that each report takes on the driver from now on."""
    seconds: list[float] = []
    receive = query.receive

    def timed(batch: int, reports: Sequence[str], started: float) -> None:
        begun = time.perf_counter()
        receive(batch, reports, started)
        if reports:
            seconds.append(time.perf_counter() - begun)

    query.receive = timed  # type: ignore[method-assign]
    return seconds


def force(spark: SparkSession, axes: Axes) -> list[str]:
    """The table of changes by hand, and their picture."""
    workload = steady()
    lines = [
        "| plans | changes asked for before batch | median batch, s | slowest batch / median "
        "| slowest of three batches from a change on / median | statistics, of a batch |",
        "|---|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        write_files(workload, place / "input")
        with console.status("changes by hand on Spark: Java gets warm"):
            for forced in FORCED:
                run_forced(workload, spark, place / "input", place / f"warm {forced.name}", forced)
        unchanged = None
        for forced in (None, *FORCED):
            name = "never changed" if forced is None else forced.name
            with console.status(f"changes by hand on Spark: {name}"):
                course = run_forced(workload, spark, place / "input", place / name, forced)
            if forced is None:
                unchanged = place / name
            else:
                check_equal(unchanged, place / name)
            full = course.seconds[20:]
            median = float(np.median(full))
            after = max((max(course.seconds[change : change + 3]) / median for change in course.changes), default=None)
            changes = ", ".join(str(change) for change in course.changes) or "-"
            beside = "-" if after is None else f"{after:.2f}"
            watching = float(np.median(course.watching[20:])) / median
            lines.append(
                f"| {name} | {changes} | {median:.2f} | {max(full) / median:.2f} | {beside} | {watching:.1%} |"
            )
            console.print(lines[-1], markup=False)
            (drawn,) = axes.plot(range(20, workload.batches), full, marker=".", label=name)
            for change in course.changes:
                axes.axvline(change, color=drawn.get_color(), linestyle=":", linewidth=0.8)
    axes.set(
        title="changes by hand, on Spark", ylabel="seconds a micro-batch", xlabel="batch; dotted: a change is asked for"
    )
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=7)
    return lines


def draw(axes: Axes, workload: Shifting, courses: dict[str, Course], what: str) -> None:
    colours = {"plan stays": "gray", "plan adapts": "tab:blue"}
    for name, course in courses.items():
        values = course.rates if what == "rows/s" else [w / r for w, r in zip(course.work, course.rows, strict=True)]
        axes.step(range(len(values)), values, where="post", color=colours[name], label=name)
    for shift in workload.shifts:
        axes.axvline(shift, color="tab:red", linewidth=0.8)
    for change in courses["plan adapts"].changes:
        axes.axvline(change, color="tab:blue", linestyle=":")
    axes.set_ylim(bottom=0)
    axes.set_ylabel(what)
    axes.set_title(workload.name, fontsize=9)
    axes.legend(fontsize=7)


def compare_locally(workload: Shifting) -> dict[str, Course]:
    courses: dict[str, list[Course]] = {name: [] for name in PLANS}
    tables: dict[str, pa.Table] = {}
    with console.status(f"{workload.name}, in one process"):
        run_locally(workload, True, 3)  # the first time everything is compiled
        for _ in range(ROUNDS):
            for name, adapt in PLANS.items():
                course, tables[name] = run_locally(workload, adapt)
                courses[name].append(course)
            if any(sum(runs[0].seconds) > QUICK for runs in courses.values()):
                break
    assert_same_rows(*tables.values())
    return {name: min(runs, key=lambda course: sum(course.seconds)) for name, runs in courses.items()}


def compare_on_spark(workload: Shifting, spark: SparkSession) -> dict[str, Course]:
    courses = {}
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        write_files(workload, place / "input")
        with console.status(f"{workload.name} on Spark: until the JVM is warm"):
            run_on_spark(workload, spark, place / "input", place / "warm", adapt=True)
        for name, adapt in PLANS.items():
            with console.status(f"{workload.name} on Spark: {name}"):
                courses[name] = run_on_spark(workload, spark, place / "input", place / name, adapt)
        check_equal(place / "plan stays", place / "plan adapts")
    return courses


def line(where: str, workload: Shifting, courses: dict[str, Course]) -> str:
    """One line of the table: rates since the first shift."""
    stays, adapts = (courses[name].rate_since(workload.shifts[0]) for name in ("plan stays", "plan adapts"))
    work = "-"
    if courses["plan stays"].work:
        before, after = (sum(courses[name].work[workload.shifts[0] :]) for name in ("plan stays", "plan adapts"))
        work = f"{after / before:.2f}"
    changes = ", ".join(str(change) for change in courses["plan adapts"].changes)
    text = f"| {workload.name} | {where} | {stays:,.0f} | {adapts:,.0f} | {adapts / stays:.2f}x | {work} | {changes} |"
    console.print(text, markup=False)
    return text


def compare(spark: SparkSession, wanted: Sequence[str]) -> None:
    """Plans that adapt beside plans that stay; the page is written if all workloads were run."""
    workloads = [rates(4), rates(8), flip()]
    chosen = [found for found in workloads if not wanted or any(word in found.name for word in wanted)]
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
            f"Results were the same with both plans. [Changes by hand](changes.md) are on a page of their own.\n\n"
            f"{table}\n\n{REMARKS}\n\n![Work and rates over time](adaptive.png)\n",
        )


def change_by_hand(spark: SparkSession) -> None:
    figure = Figure(figsize=(13, 3.2), layout="constrained")
    table = "\n".join(force(spark, figure.add_subplot()))
    write(
        "changes",
        figure,
        "# Changes of plan by hand, under load (`python -m benchmarks.adaptive hand`)\n\n"
        "Four streams of 50,000 rows a batch each on Spark, full windows; plans take turns. Results were the same as "
        "without a change. Statistics are always taken, in every shard, and reach the driver with each micro-batch: "
        f"both together.\n\n{table}\n\n![Seconds of each micro-batch](changes.png)\n",
    )


def write(name: str, figure: Figure, page: str) -> None:
    figure.savefig(RESULTS / f"{name}.png", dpi=110, metadata={"Software": None})
    (RESULTS / f"{name}.md").write_text(page)


def main() -> None:
    wanted = sys.argv[1:]
    spark = local_spark(settings={"spark.driver.memory": "6g", "spark.sql.streaming.numRecentProgressUpdates": "1000"})
    spark.sparkContext.setLogLevel("ERROR")
    if wanted != [HAND]:
        compare(spark, [word for word in wanted if word != HAND])
    if not wanted or HAND in wanted:
        change_by_hand(spark)
    spark.stop()


if __name__ == "__main__":
    main()
