"""Estimates are true: what `explain` shows comes, and intervals hold what other orders cost."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from benchmarks import regret_runs
from benchmarks.nexmark.generator import Auctions
from benchmarks.nexmark.multiway import JOINS
from benchmarks.regret_workloads import Contest, contests
from benchmarks.workload import Workload, one_key, uniform, zipf

from braid.adapt.monitor import Interval, Monitor
from braid.engine.segment import Segment
from braid.model.plan import Plan
from braid.runtime.report import ShardReport
from braid.runtime.routing import router_for
from braid.runtime.shard import Shard, ShardSettings
from braid.runtime.totals import Totals
from braid.testing import Case, assert_same_rows
from braid.testing.cluster import ShardedCase
from braid.workloads.nexmark import Nexmark

CONTESTS = {contest.name: contest for contest in contests()}
FAILURE = next(contest for contest in contests() if "failure" in contest.name)
JoinOf = tuple[str, frozenset[str]]
"""A head, and the streams that a join of its probe sequence has joined."""

FEWEST = 100
"""Fewer rows than this in a batch are chance."""


@dataclass(frozen=True)
class Batch:
    report: ShardReport
    shard: Shard
    seconds: float


def on_one_site() -> list[Contest]:
    """The workloads of `benchmarks.spark` and Nexmark's multi-way joins, with fewer rows."""
    eight, on_one_key = one_key(8, uniform(4_000))
    band = {"a": {"x": uniform(10_000)}, "b": {"x": uniform(10_000)}}
    hot, on_hot = one_key(3, uniform(250))
    hot["s0"] = {"k": zipf(250, 1.2)}
    made = [
        Workload("8 streams", eight, on_one_key, 2, 4, 4_000),
        Workload("band", band, "a.x BETWEEN b.x - 1 AND b.x + 1", 5, 4, 2_000),
        Workload("zipf key", hot, on_hot, 1, 4, 4_000),
    ]
    nexmark = Auctions(Nexmark(10_000, 100_000), 4)
    return [
        *(Contest(workload.name, workload.text, lambda own=workload: iter(own.batches())) for workload in made),
        *(Contest(f"Nexmark {join.name}", join.text, nexmark.batches, time="dateTime") for join in JOINS),
    ]


ON_ONE_SITE = {contest.name: contest for contest in on_one_site()}


def run(contest: Contest, batches: int, plan: Any = None) -> Iterator[Batch]:
    """The first batches of a workload under a plan, one after the other."""
    shard: Shard | None = None
    for rows in islice(contest.make(), batches):
        if shard is None:
            query = regret_runs.query_of(contest, rows)
            shard = Shard(query, Plan.of(query, plan), ShardSettings())
        times = [np.asarray(batch.column(contest.time).cast("int64")) for batch in rows.values()]
        first, last = min(one[0] for one in times), max(one[-1] for one in times)
        _, report = shard.step([Segment(name, batch, int(first)) for name, batch in rows.items()])
        yield Batch(report, shard, (last - first) / 1e6)


def explained(text: str) -> dict[tuple[str, int], float]:
    """The rows per second that an explanation shows, by head and step."""
    rates, head = {}, ""
    for line in text.splitlines():
        if line.startswith("new rows of "):
            head = line.split()[3].rstrip(":")
        step = re.match(r"  (\d+)\. probe .* about ([0-9.,e+-]+) rows/s", line)
        if step is not None:
            rates[head, int(step[1])] = float(step[2].replace(",", ""))
    return rates


def steps_after(batches: Sequence[Batch]) -> dict[tuple[str, int], float]:
    """The rows per second that `explain` shows for each step of the plan, after some batches."""
    plan = batches[-1].shard.plan
    totals = Totals(plan.query, router_for(plan.query, 1))
    for batch in batches:
        totals.add([batch.report])
    return explained(plan.explain(totals.statistics()))


def shown_after(batches: Sequence[Batch]) -> dict[JoinOf, float]:
    """The same by the streams that each step of a probe sequence has joined."""
    orders = {head: (head, *others) for head, others in batches[-1].shard.plan.sequences.items()}
    return {(head, frozenset(orders[head][: step + 1])): rate for (head, step), rate in steps_after(batches).items()}


def came_in(batches: Sequence[Batch]) -> dict[JoinOf, float]:
    """The rows per second that each join of probe sequences has made, if they are enough to be no chance."""
    seconds = sum(batch.seconds for batch in batches)
    rows: Counter[JoinOf] = Counter()
    for join in (join for batch in batches for join in batch.report.joins):
        rows[join.bound[0], frozenset([*join.bound, *join.probed])] += join.matches
    return {key: count / seconds for key, count in rows.items() if count >= FEWEST}


def by_streams(rates: Mapping[JoinOf, float]) -> dict[frozenset[str], float]:
    """The rates of all heads together: a frequent key may bring the rows of one stream in this batch or in the next."""
    sums: dict[frozenset[str], float] = defaultdict(float)
    for (_, streams), rate in rates.items():
        sums[streams] += rate
    return sums


@pytest.mark.parametrize("name", [*CONTESTS, *ON_ONE_SITE])
def test_what_explain_shows_after_three_batches_comes_in_the_next_one(name: str) -> None:
    """Within a factor of two, although all windows were empty at first."""
    *known, last = run((CONTESTS | ON_ONE_SITE)[name], 4)
    # Nothing before tells that the next batch is of another kind.
    shown, came = shown_after(known), came_in([known[-1] if "alternation" in name else last])
    assert came
    if "Nexmark" in name:
        # Where a single hot auction or seller decides, no batch tells what the next one brings: that is left out.
        before, together = by_streams(came_in(known[-1:])), by_streams(came)
        predictable = {streams for streams, rate in together.items() if 0.5 <= before[streams] / rate <= 2}
        expected = by_streams({key: shown[key] for key in came})
        assert len(predictable) >= 3
        assert {streams for streams in predictable if not 0.5 <= expected[streams] / together[streams] <= 2} == set()
    else:
        assert {key: (shown[key], rate) for key, rate in came.items() if not 0.5 <= shown[key] / rate <= 2} == {}


@pytest.mark.parametrize(
    ("name", "plan"), [("correlated conditions", (("a", "c"), "b")), ("zipf fan-out", (("a", "d"), ("b", "c")))]
)
def test_what_explain_shows_of_a_tree_has_been_counted(name: str, plan: Any) -> None:
    *known, last = run(CONTESTS[name], 4, plan)
    last_steps = dict(sorted(steps_after(known).items(), key=lambda step: step[0][1]))
    results = sum({head: rate for (head, _), rate in last_steps.items()}.values())
    came = last.report.rows_out / last.seconds
    assert came / 2 <= results <= came * 2


@pytest.mark.parametrize("name", ["8 streams", "Nexmark j1"])
def test_what_explain_shows_does_not_depend_on_the_number_of_shards(name: str) -> None:
    contest = ON_ONE_SITE[name]
    batches = [{stream: pa.table(rows) for stream, rows in batch.items()} for batch in islice(contest.make(), 3)]
    streams, times = batches[0], dict.fromkeys(batches[0], contest.time)
    shown = []
    for shards in (1, 3):
        cluster = ShardedCase(Case(contest.text, streams, times, dict.fromkeys(streams, 0), None, 10), shards)
        totals = Totals(cluster.spec.query, cluster.spec.router)
        for rows in batches:
            cluster.reports.clear()
            cluster.batch(rows)
            totals.add(cluster.reports)
        shown.append(explained(Plan.of(cluster.spec.query, None).explain(totals.statistics())))
    assert shown[1] == pytest.approx(shown[0], rel=0.01)


def test_figures_of_an_earlier_plan_are_not_shown() -> None:
    (batch,) = run(FAILURE, 1)
    totals = Totals(batch.shard.plan.query, router_for(batch.shard.plan.query, 1))
    totals.add([batch.report])
    assert totals.statistics().fanouts
    order = {"S": ("A", "B", "W"), "A": ("S", "B", "W"), "B": ("W", "A", "S"), "W": ("S", "A", "B")}
    nothing = replace(batch.report, plan=order, joins=())
    totals.add([nothing])
    assert totals.statistics().fanouts == {}


def fanouts_after(contest: Contest, batches: int) -> tuple[dict[tuple[str, str], Interval], Batch]:
    """What the samples of a run show, by head and the other streams, and its last batch."""
    monitor = None
    for number, batch in enumerate(run(contest, batches)):
        monitor = monitor or Monitor(batch.shard.plan.query)
        monitor.observe(batch.report.observation, 10.0 * number)
    assert monitor is not None
    fanouts = monitor.snapshot().fanouts
    return {(head, "".join(sorted(bound - {head}))): fanout for (head, bound), fanout in fanouts.items()}, batch


def test_a_key_without_an_index_is_sampled() -> None:
    """No window has an index on the bidder alone. A bid matches few bidders of earlier batches."""
    fanouts, _ = fanouts_after(FAILURE, 4)
    order = {"S": ("A", "B", "W"), "A": ("S", "B", "W"), "B": ("W", "A", "S"), "W": ("S", "A", "B")}
    *_, last = run(FAILURE, 4, order)
    (matches,) = (join.matches for join in last.report.joins if (join.bound, join.stream) == (("B",), "W"))
    truth = matches / last.report.observation.streams["B"].entered
    assert 0 < truth <= fanouts["B", "W"].most < 0.5


def test_the_failure_does_not_happen_again() -> None:
    """Left to adapt, this join once took a plan that cost twenty times as much as the order of its text."""
    fixed, adaptive = regret_runs.run(FAILURE), regret_runs.run(FAILURE, adapt=True)
    assert adaptive.results is not None
    assert fixed.results is not None
    assert_same_rows(adaptive.results, fixed.results)
    for adapted, stayed in zip(adaptive.work, fixed.work, strict=True):
        assert adapted <= 1.3 * stayed
    assert sum(adaptive.work) < sum(fixed.work) / 5
    for change in adaptive.changes:
        assert change.verdict in ("kept", "taken back")
        assert None not in (change.predicted, change.work_predicted, change.work_before, change.work_measured)


def test_correlated_conditions_are_seen() -> None:
    """Independent of each other, the two conditions would pass a fiftieth of what they do."""
    fanouts, last = fanouts_after(CONTESTS["correlated conditions"], 4)
    held = last.report.observation.streams["a"].held
    assert fanouts["b", "a"].estimate == pytest.approx(held / 50, rel=0.2)
    assert fanouts["b", "ac"].estimate == pytest.approx(
        fanouts["b", "a"].estimate * fanouts["a", "c"].estimate, rel=1.0
    )


def test_the_mean_of_a_product_is_not_taken_for_the_product_of_means() -> None:
    fanouts, _ = fanouts_after(CONTESTS["zipf fan-out"], 6)
    by_means = fanouts["a", "b"].estimate * fanouts["b", "c"].estimate
    assert fanouts["a", "bc"].estimate < by_means / 2 or fanouts["a", "bc"].estimate > by_means * 2
