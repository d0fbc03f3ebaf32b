"""What it costs to let a plan adapt, compared with every plan that stays. Run by `python -m benchmarks.regret`.

Each workload runs under the order of its text, under every other fixed order, and adapting. Work is counted (probes,
and the rows that they look at), so that the same input gives the same figures. The heads of a plan do their work
independently, so a run for each sequence of a head shows what every fixed plan would cost: with up to four streams all
of them, else 30 at random. Only orders without a cross product count, as planners choose no others.

Results are compared before a figure is shown.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice, permutations
from pathlib import Path

import numpy as np
import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.console import Console

from benchmarks.regret_workloads import Contest, contests
from braid.adapt.history import RecordedChange
from braid.engine.segment import Segment
from braid.hosts.local.controller import LocalController
from braid.language import parse
from braid.model.plan import Plan, Written
from braid.model.query import Query
from braid.model.stream import Stream
from braid.runtime.shard import Shard, ShardSettings
from braid.testing import assert_same_rows

RESULTS = Path(__file__).parent.parent / "docs" / "results"

MOST_ORDERS = 30
"""The most sequences of a head that are run."""

console = Console()


@dataclass
class Run:
    """The measurements of a run, batch by batch. `heads` is the work of each head over all batches after warm-up."""

    work: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    heads: list[Counter[str]] = field(default_factory=list)
    changes: tuple[RecordedChange, ...] = ()
    results: pa.Table | None = None

    def total(self, first: int = 0) -> int:
        return sum(self.work[first:])


def run(contest: Contest, written: Written | None = None, adapt: bool = False) -> Run:
    """Run a workload batch by batch in one shard, under a plan or adapting."""
    batches = contest.make()
    measured, results = Run(), []
    shard: Shard | None = None
    for number, batch in enumerate(batches):
        if shard is None:
            query = query_of(contest, batch)
            plan = Plan.of(query, written)
            shard = Shard(query, plan, ShardSettings(samples=adapt))
            controller = LocalController(plan, adapt)
        watermark = min(int(rows.column("ts")[0].value) for rows in batch.values())
        segments = [Segment(name, rows, watermark) for name, rows in batch.items()]
        before, started = by_head(shard), time.perf_counter()
        step_results, report = shard.step(segments)
        # Counted before the plan changes: a new plan counts from zero.
        measured.heads.append(by_head(shard) - before)
        if adapt:
            shard.change(*controller.decide(report, number))
        measured.seconds.append(time.perf_counter() - started)
        results += step_results
        measured.work.append(report.observation.work)
        measured.rows.append(sum(rows.num_rows for rows in batch.values()))
    assert shard is not None
    measured.changes = controller.adaptation.history.changes
    measured.results = pa.Table.from_batches(results, shard.engine.schema)
    return measured


def query_of(contest: Contest, batch: Mapping[str, pa.RecordBatch]) -> Query:
    return parse(contest.text, {name: Stream(name, rows.schema, "ts") for name, rows in batch.items()})


def by_head(shard: Shard) -> Counter[str]:
    """The work of each head since the plan began."""
    work: Counter[str] = Counter()
    for join in shard.engine.counts().joins:
        work[join.bound[0]] += join.work
    return work


def sequences(query: Query, head: str) -> list[tuple[str, ...]]:
    """The probe sequences of a head without a cross product: all, or some at random if there are too many."""
    others = [alias for alias in query.aliases if alias != head]
    joined = [order for order in permutations(others) if _is_joined(query, head, order)]
    if len(joined) > MOST_ORDERS:
        chosen = np.random.default_rng(1).choice(len(joined), MOST_ORDERS, replace=False)
        joined = [joined[number] for number in sorted(chosen)]
    return joined


def _is_joined(query: Query, head: str, order: tuple[str, ...]) -> bool:
    return all(query.graph.joined([head, *order[:position]], stream) for position, stream in enumerate(order))


def fixed_plans(query: Query) -> Iterator[Written]:
    """Plans that together have every sequence of every head."""
    orders = {head: sequences(query, head) for head in query.aliases}
    for number in range(max(map(len, orders.values()))):
        yield {head: of_head[number % len(of_head)] for head, of_head in orders.items()}


@dataclass(frozen=True)
class Result:
    """The runs of one workload. `fixed` has the work of each sequence of each head, batch by batch."""

    contest: Contest
    text: Run
    adaptive: Run
    best: Run
    fixed: Mapping[str, Mapping[tuple[str, ...], list[int]]]

    @property
    def first(self) -> int:
        """The first batch after the warm-up of a steady workload."""
        return self.contest.warm_up if self.contest.steady else 0

    def worst_work(self) -> int:
        return sum(max(sum(works) for works in of_head.values()) for of_head in self.fixed.values())

    def best_work(self, first: int = 0) -> int:
        """The least work of any fixed plan from a batch on."""
        return sum(min(sum(works[first:]) for works in of_head.values()) for of_head in self.fixed.values())


def compete(contest: Contest) -> Result:
    query = query_of(contest, next(contest.make()))
    with console.status(contest.name):
        run(Contest(contest.name, contest.text, lambda: islice(contest.make(), 2)))  # Compiles the kernels.
        text, adaptive = run(contest), run(contest, adapt=True)
        assert text.results is not None and adaptive.results is not None
        assert_same_rows(adaptive.results, text.results)
        fixed: dict[str, dict[tuple[str, ...], list[int]]] = {head: {} for head in query.aliases}
        for written in fixed_plans(query):
            assert isinstance(written, Mapping)
            measured = run(contest, written)
            for head, order in written.items():
                fixed[head][tuple(order)] = [work[head] for work in measured.heads]
        first = contest.warm_up if contest.steady else 0
        best = {head: min(works, key=lambda order: sum(works[order][first:])) for head, works in fixed.items()}
        return Result(contest, text, adaptive, run(contest, best), fixed)


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


def main() -> None:
    words = sys.argv[1:]
    chosen = [contest for contest in contests() if not words or any(word in contest.name for word in words)]
    lines, figure = [HEADER], Figure(figsize=(13, 2.6 * -(-len(chosen) // 3)), layout="constrained")
    for number, contest in enumerate(chosen):
        result = compete(contest)
        lines.append(line(result))
        console.print(lines[-1], markup=False)
        draw(figure.add_subplot(-(-len(chosen) // 3), 3, number + 1), result)
    if not words:
        figure.savefig(RESULTS / "regret.png", dpi=110, metadata={"Software": None})
        (RESULTS / "regret.md").write_text("\n".join(lines))


if __name__ == "__main__":
    main()
