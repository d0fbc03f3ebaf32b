"""Estimates are true: what `explain` shows comes, and intervals hold what other orders cost."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import pytest
from benchmarks import regret_runs
from benchmarks.regret_workloads import Contest, contests

from braid.adapt.monitor import Interval, Monitor
from braid.engine.segment import Segment
from braid.language import parse
from braid.model.plan import Plan
from braid.model.stream import Stream
from braid.runtime.report import ShardReport
from braid.runtime.routing import router_for
from braid.runtime.shard import Shard, ShardSettings
from braid.runtime.totals import Totals
from braid.testing import assert_same_rows

CONTESTS = {contest.name: contest for contest in contests()}
FAILURE = next(contest for contest in contests() if "failure" in contest.name)
FEWEST = 100
"""Fewer rows than this in a batch are chance."""


@dataclass(frozen=True)
class Batch:
    report: ShardReport
    shard: Shard
    seconds: float


def run(contest: Contest, batches: int, plan: Any = None) -> Iterator[Batch]:
    """The first batches of a workload under a plan, one after the other."""
    shard: Shard | None = None
    for rows in islice(contest.make(), batches):
        if shard is None:
            query = parse(contest.text, {name: Stream(name, batch.schema, "ts") for name, batch in rows.items()})
            shard = Shard(query, Plan.of(query, plan), ShardSettings())
        times = [np.asarray(batch.column("ts").cast("int64")) for batch in rows.values()]
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


@pytest.mark.parametrize("name", CONTESTS)
def test_what_explain_shows_after_three_batches_is_what_came(name: str) -> None:
    """Within a factor of two, although all windows were empty at first."""
    contest = CONTESTS[name]
    *_, came = batches = list(run(contest, 3))
    query, plan = came.shard.plan.query, came.shard.plan
    totals = Totals(query, router_for(query, 1))
    for batch in batches:
        totals.add([batch.report])
    shown, compared = explained(plan.explain(totals.statistics())), 0
    for join in came.report.joins:
        if join.matches >= FEWEST:
            actual = join.matches / came.seconds
            assert actual / 2 <= shown[join.bound[0], len(join.bound)] <= actual * 2, join
            compared += 1
    assert compared >= 2


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
