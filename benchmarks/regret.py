"""What it costs to let a plan adapt, compared with every plan that stays. Run by `python -m benchmarks.regret`.

Each workload runs under the order of its text, under every other fixed order, and adapting. Work is counted (probes,
and the rows that they look at), so that the same input gives the same figures. The heads of a plan do their work
independently, so a run for each sequence of a head shows what every fixed plan would cost: with up to four streams all
of them, else 30 at random. Only orders without a cross product count, as planners choose no others.

Results are compared before a figure is shown. `python -m benchmarks.regret local` measures one process only, `.. spark`
Spark only; the other table of the page stays. With words of their names, some workloads run, and the page stays.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pyspark.sql import SparkSession
from rich.console import Console

import braid
from benchmarks.adaptive import declare_streams, parquet_writer
from benchmarks.regret_runs import Result, Run, compete
from benchmarks.regret_workloads import Contest, contests
from benchmarks.shifting import Batch
from benchmarks.spark import check_equal
from braid.hosts.spark.driver.local_spark import local_spark

RESULTS = Path(__file__).parent.parent / "docs" / "results"

console = Console()


def run_on_spark(contest: Contest, spark: SparkSession, directory: Path, target: Path, adapt: bool) -> Run:
    """Run a workload on Spark, with the files of each batch as one micro-batch, into a Parquet sink."""
    session = braid.Session(spark, adapt=adapt)
    declare_streams(session, spark, directory)
    query = session.sql(contest.text)
    measured = Run()
    with tempfile.TemporaryDirectory() as checkpoint:
        started = parquet_writer(query, target, checkpoint).trigger(availableNow=True).start()
        started.awaitTermination()
        for progress in started.recentProgress:
            rows = sum(source.numInputRows for source in progress.sources)
            if rows:
                measured.rows.append(rows)
                measured.seconds.append(progress.durationMs["triggerExecution"] / 1_000)
    measured.changes = query.history()
    return measured


def compete_on_spark(contest: Contest, spark: SparkSession) -> str:
    """A line of the table of Spark: the seconds of all micro-batches after the first two, and the worst of them."""
    with tempfile.TemporaryDirectory() as temporary, console.status(f"{contest.name} on Spark"):
        directory = Path(temporary)
        _write_batches(islice(contest.make(), WARM_UP_ON_SPARK), directory / "few")
        _write_batches(islice(contest.make(), BATCHES_ON_SPARK), directory / "input")
        run_on_spark(contest, spark, directory / "few", directory / "warm", adapt=True)
        text, adaptive = (
            run_on_spark(contest, spark, directory / "input", directory / name, adapt)
            for name, adapt in {"text": False, "adapts": True}.items()
        )
        check_equal(directory / "text", directory / "adapts")
    stays, adapts = sum(text.seconds[2:]), sum(adaptive.seconds[2:])
    worst = max(adaptive.seconds[2:]) / max(text.seconds[2:])
    verdicts = ", ".join(change.verdict for change in adaptive.changes) or "none"
    return f"| {contest.name} | {stays:.2f} | {adapts:.2f} | {adapts / stays:.2f} | {worst:.2f} | {verdicts} |"


def _write_batches(batches: Iterable[Batch], directory: Path) -> None:
    """Write a file of each stream for each batch."""
    for number, batch in enumerate(batches):
        for name, rows in batch.items():
            (directory / name).mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.table(rows), directory / name / f"{number:05d}.parquet")


HEADER = (
    "| workload | work/row: text | best fixed | worst fixed | adapts | adapts / text | adapts / best, after warm-up "
    "| seconds: text | best | adapts | changes: kept, taken back |\n|---|---|---|---|---|---|---|---|---|---|---|"
)


def line(result: Result) -> str:
    rows = sum(result.text.rows)
    adapts, text, first = result.adaptive.total(), result.text.total(), result.first
    late = result.adaptive.total(first) / result.best_work(first) if result.contest.steady else None
    verdicts = Counter(change.verdict for change in result.adaptive.changes)
    works = (text, result.best_work(), result.worst_work(), adapts)
    seconds = (sum(measured.seconds) for measured in (result.text, result.best, result.adaptive))
    return (
        f"| {result.contest.name} | {' | '.join(f'{work / rows:,.2f}' for work in works)} | {adapts / text:.2f} "
        f"| {'-' if late is None else f'{late:.2f}'} | {' | '.join(f'{spent:.2f}' for spent in seconds)} "
        f"| {verdicts['kept']}, {verdicts['taken back']} |"
    )


def draw(axes: Axes, result: Result) -> None:
    """The work of each batch under the order of the text, the best fixed plan and a plan that adapts."""
    runs = {"order of the text": result.text, "best fixed order": result.best, "adapts": result.adaptive}
    colours = {"order of the text": "gray", "best fixed order": "tab:green", "adapts": "tab:blue"}
    for name, measured in runs.items():
        values = [work / rows for work, rows in zip(measured.work, measured.rows, strict=True)]
        axes.step(range(len(values)), values, where="post", color=colours[name], label=name)
    for change in result.adaptive.changes:
        axes.axvline(change.batch + 1, color="tab:blue" if change.verdict == "kept" else "tab:red", linestyle=":")
    axes.set_yscale("log")
    axes.set_title(result.contest.name, fontsize=9)
    axes.legend(fontsize=6)


SPARK_HEADER = (
    "| workload | seconds: text | adapts | adapts / text | slowest micro-batch, adapts / text | verdicts |\n"
    "|---|---|---|---|---|---|"
)

PAGE = """\
# What adapting costs (`python -m benchmarks.regret`)

Each workload runs under the order of its text, under every other fixed order without a cross product (at most 30 for a
stream), and adapting. Work is probes and the rows they look at, for each row in; it is the same on every machine. The
best and the worst fixed order are known only afterwards. *After warm-up* leaves out the first six batches, of workloads
that stay the same. Adapting gave the same results as the order of the text. Seconds are of one run each.

{local}

Goals: never more than 1.3 times the work of the text's order; at most 1.15 times that of the best fixed order after
warm-up, if the streams stay the same.

The second batch is always sampled; after it, samples and comparisons take at most a fifth of all work. So in batches
of a few milliseconds an order that becomes better later is found some batches later.

On Spark, the seconds of {batches} micro-batches of each workload, without the first two:

{spark}

![Work of each batch](regret.png)

Dotted: a new order is on trial from this batch on; blue if it was kept, red if it was taken back.
"""

WARM_UP_ON_SPARK = 5
BATCHES_ON_SPARK = 18
"""The micro-batches of each workload on Spark. The first ones of them run before, so that all kernels are compiled."""


def compete_locally(chosen: Sequence[Contest]) -> tuple[str, Figure]:
    """The table of one process, and the plot of the work of each batch."""
    lines, figure = [HEADER], Figure(figsize=(13, 2.6 * -(-len(chosen) // 3)), layout="constrained")
    for number, contest in enumerate(chosen):
        with console.status(contest.name):
            result = compete(contest)
        lines.append(line(result))
        console.print(lines[-1], markup=False, soft_wrap=True)
        draw(figure.add_subplot(-(-len(chosen) // 3), 3, number + 1), result)
    return "\n".join(lines), figure


def compete_all_on_spark(chosen: Sequence[Contest]) -> str:
    """The table of Spark."""
    settings = {"spark.driver.memory": "4g", "spark.sql.streaming.numRecentProgressUpdates": "1000"}
    spark = local_spark(settings=settings)
    spark.sparkContext.setLogLevel("ERROR")
    lines = [SPARK_HEADER]
    for contest in chosen:
        lines.append(compete_on_spark(contest, spark))
        console.print(lines[-1], markup=False, soft_wrap=True)
    spark.stop()
    return "\n".join(lines)


def tables_of(page: str) -> list[str]:
    """The tables of a page."""
    parts = (part.strip() for part in page.split("\n\n"))
    return [part for part in parts if part.startswith("|")]


def main() -> None:
    parts = {"local", "spark"} & set(sys.argv[1:]) or {"local", "spark"}
    words = [word for word in sys.argv[1:] if word not in parts]
    chosen = [contest for contest in contests() if not words or any(word in contest.name for word in words)]
    measured: dict[str, str] = {}
    if "local" in parts:
        measured["local"], figure = compete_locally(chosen)
        if not words:
            figure.savefig(RESULTS / "regret.png", dpi=110, metadata={"Software": None})
    if "spark" in parts:
        measured["spark"] = compete_all_on_spark(chosen)
    if not words:
        page = RESULTS / "regret.md"
        local, spark = tables_of(page.read_text())
        page.write_text(PAGE.format(**{"local": local, "spark": spark} | measured, batches=BATCHES_ON_SPARK))


if __name__ == "__main__":
    main()
