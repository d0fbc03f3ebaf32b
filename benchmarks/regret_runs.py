"""Runs of `regret` in one process: a workload under a fixed plan or adapting, and under every fixed order."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice, permutations

import numpy as np
import pyarrow as pa

from benchmarks.regret_workloads import Contest
from braid.adapt.history import RecordedChange
from braid.adapt.observation import SAMPLING
from braid.engine.segment import Segment
from braid.hosts.local.controller import LocalController
from braid.language import parse
from braid.model.plan import Plan, Written
from braid.model.query import Query
from braid.model.stream import Stream
from braid.runtime.shard import Shard, ShardSettings
from braid.testing import assert_same_rows

MOST_ORDERS = 30
"""The most sequences of a head that are run."""


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
            shard = Shard(query, plan, ShardSettings(sampling=SAMPLING if adapt else 0.0))
            controller = LocalController(plan, adapt)
        watermark = min(int(rows.column(contest.time)[0].value) for rows in batch.values())
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
    return parse(contest.text, {name: Stream(name, rows.schema, contest.time) for name, rows in batch.items()})


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
