"""Adaptation on the local host: plans change by themselves, results never do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import braid
from braid.adapt.adaptation import Adaptation
from braid.adapt.controller import Policy
from braid.adapt.history import RecordedChange
from braid.adapt.observation import SAMPLING
from braid.engine.engine import Engine
from braid.engine.segment import Segment
from braid.engine.window import window_state as window
from braid.hosts.local.controller import LocalController
from braid.language import parse
from braid.model.plan import Plan, Written
from braid.model.stream import Stream
from braid.planning.lowering.one_site import lower
from braid.runtime.arrival import Arrival, steps
from braid.runtime.observing import Watch
from braid.runtime.shard import Shard, ShardSettings
from braid.testing import assert_same_rows, oracle, random_case, without_late_rows
from braid.testing.flipping import FLIP, flipping
from braid.workloads.nexmark import QUERIES, Nexmark

EAGER = Policy(threshold=0.0, horizon=1e9, drift=0.0, half_life=0.001, sampling=inf)
"""Changes the plan whenever another one seems at all cheaper."""


def adaptive_run(
    text: str,
    tables: dict[str, pa.Table],
    batch_rows: int | None,
    adapt: bool | Policy = True,
    plan: Written | None = None,
) -> tuple[pa.Table, Adaptation]:
    """What `braid.run` does, with access to the adaptation. Every batch is sampled, however small."""
    arrivals = {name: Arrival(name, table, "ts", "0 seconds") for name, table in tables.items()}
    query = parse(text, {name: arrival.stream for name, arrival in arrivals.items()})
    first = Plan.of(query, plan)
    shard = Shard(query, first, ShardSettings(sampling=inf))
    controller = LocalController(first, adapt)
    windows = [(source.declared.name, source.window) for source in query.sources]
    results: list[pa.RecordBatch] = []
    for step, segments in enumerate(steps(arrivals.values(), batch_rows, windows)):
        step_results, report = shard.step(segments)
        results += step_results
        shard.change(*controller.decide(report, step))
    return pa.Table.from_batches(results + shard.finish(), shard.engine.schema), controller.adaptation


def test_the_plan_follows_selectivities_that_flip() -> None:
    tables = flipping()
    result, adaptation = adaptive_run(FLIP, tables, 50)
    assert_same_rows(result, oracle(FLIP, tables))
    changes = adaptation.history.changes
    assert 1 <= len(changes) <= 3
    last = changes[-1]
    assert 20 <= last.batch <= 28, "within a few batches of the flip, which is at batch 20"
    assert changes[0].before["a"] == ("b", "c")
    assert last.after["a"] == ("c", "b")
    assert last.predicted is not None
    assert last.verdict == "kept"
    assert last.predicted > 0.2
    assert last.measured is not None
    assert last.measured > 0.2


def test_trees_follow_the_flip_and_are_judged_by_their_work() -> None:
    tables = flipping()
    result, adaptation = adaptive_run(FLIP, tables, 50, plan=(("a", "b"), "c"))
    assert_same_rows(result, oracle(FLIP, tables))
    assert adaptation.plan.tree is not None
    changes = adaptation.history.changes
    assert [change for change in changes if change.batch in range(20, 29) and change.verdict == "kept"]
    for change in changes:
        assert change.verdict in ("kept", "taken back")
        assert None not in (change.predicted, change.work_before, change.measured)
        assert change.measured is not None
        assert (change.measured >= 0) == (change.verdict == "kept")


@pytest.mark.parametrize(("sampling", "sampled"), [(0.0, 0), (0.2, 2), (inf, 40)])
def test_small_batches_are_sampled_as_far_as_their_work_affords(sampling: float, sampled: int) -> None:
    """Forty batches of 150 rows are worth about 6 million probes, and a sample of three streams 0.6 million."""
    arrivals = {name: Arrival(name, table, "ts", "0 seconds") for name, table in flipping().items()}
    query = parse(FLIP, {name: arrival.stream for name, arrival in arrivals.items()})
    shard = Shard(query, Plan.of(query, None), ShardSettings(sampling=sampling))
    reports = [shard.step(segments)[1] for segments in steps(arrivals.values(), 50, [])]
    assert len(reports) == 40
    observations = [report.observation for report in reports]
    assert abs(sum(seen.is_sampled for seen in observations) - sampled) <= 1
    assert {seen.is_sampled for seen in observations if seen.keys} <= {True}
    assert observations[1].is_sampled == (sampling > 0), "rates are known from then on"


def history_of(text: str, batches: Sequence[Mapping[str, pa.RecordBatch]], sampling: float) -> list[RecordedChange]:
    """The plan changes of a run in which each batch is one step."""
    query = parse(text, {name: Stream(name, rows.schema, "ts") for name, rows in batches[0].items()})
    plan = Plan.of(query, None)
    shard, controller = Shard(query, plan, ShardSettings(sampling=sampling)), LocalController(plan, True)
    for step, batch in enumerate(batches):
        watermark = min(int(rows.column("ts")[0].value) for rows in batch.values())
        _, report = shard.step([Segment(name, rows, watermark) for name, rows in batch.items()])
        shard.change(*controller.decide(report, step))
    return list(controller.adaptation.history.changes)


def test_rare_rows_that_are_most_of_the_work_have_the_best_order_after_the_second_batch() -> None:
    """About one auction in 1,000 is most of the work of new auctions; a sample of a batch has none or one of them."""
    batches = [dict(batch) for batch in Nexmark(rate=4_000, rows=40_000).batches(4)]
    (change,) = history_of(QUERIES["5-way"], batches, SAMPLING)
    assert (change.batch, change.verdict, change.taken_back) == (1, "kept", ())
    assert change.after["O"] == ("W", "B", "A", "S")


def test_correlated_conditions_of_seven_streams_are_seen() -> None:
    """Which streams a row of the hub matches depends on its kind. With samples of pairs only, no order is tried."""
    generator, leaves = np.random.default_rng(4), "bcdefg"
    often = generator.choice([0.02, 0.02, 1.02, 4.02], size=(len(leaves), 6))

    def rows(second: int, **keys: np.ndarray[Any, Any]) -> pa.RecordBatch:
        count = len(next(iter(keys.values())))
        times = second * 1_000_000 + np.sort(generator.integers(0, 1_000_000, count))
        return pa.RecordBatch.from_pydict({"ts": pa.array(times, pa.timestamp("us")), **keys})

    batches = []
    for second in range(12):
        kinds = generator.integers(0, 6, 100) * 10
        batch = {"a": rows(second, **{f"k{leaf}": kinds + generator.integers(0, 10, 100) for leaf in leaves})}
        for leaf, by_kind in zip(leaves, often, strict=True):
            kinds = generator.choice(6, 30, p=by_kind / by_kind.sum()) * 10
            batch[leaf] = rows(second, k=kinds + generator.integers(0, 10, 30))
        batches.append(batch)
    text = "SELECT a.ts AS ts FROM a [RANGE 2 SECONDS], " + ", ".join(f"{leaf} [RANGE 2 SECONDS]" for leaf in leaves)
    text += " WHERE " + " AND ".join(f"a.k{leaf} = {leaf}.k" for leaf in leaves)
    kept = [change for change in history_of(text, batches, inf) if change.verdict == "kept"]
    assert kept
    assert max(change.measured or 0.0 for change in kept) > 0.3


def test_without_adapting_the_plan_stays_but_the_snapshot_has_all_figures() -> None:
    tables = flipping()
    result, adaptation = adaptive_run(FLIP, tables, 50, adapt=False)
    assert_same_rows(result, oracle(FLIP, tables))
    assert adaptation.history.changes == ()
    figures = adaptation.snapshot().streams["a"]
    assert figures.rate == pytest.approx(50, rel=0.2)
    assert figures.event_rate == pytest.approx(50, rel=0.2)
    assert figures.population == pytest.approx(4 * 50, rel=0.4)
    assert figures.size == 24.0
    assert figures.late == 0.0


@pytest.mark.parametrize("seed", range(100))
def test_results_of_random_cases_are_those_of_the_oracle(seed: int) -> None:
    case = random_case(seed)
    result = braid.run(case.text, case.streams, **(case.options | {"adapt": True}))
    assert_same_rows(result, oracle(case.text, without_late_rows(case), time=case.time), message=repr(case))


def test_results_are_those_of_the_oracle_while_the_plan_changes_often(caplog: pytest.LogCaptureFixture) -> None:
    """The log shows that the plan does change often."""
    caplog.set_level("INFO", "braid.hosts.local.controller")
    for seed in range(8):
        tables = moody(seed)
        result = braid.run(MOODY, tables, batch_rows=10, adapt=EAGER)
        assert_same_rows(result, oracle(MOODY, tables))
    assert len([record for record in caplog.records if "another order saves" in record.message]) > 25
    assert len([record for record in caplog.records if "the trial is over: taken back" in record.message]) > 3


MOODY = """SELECT a.n AS an, b.n AS bn, c.n AS cn, d.n AS dn FROM a [RANGE 3 SECONDS], b [ROWS 15], c [RANGE 4 SECONDS],
           d [RANGE 2 SECONDS SLIDE 1 SECOND] WHERE a.k = b.k AND b.j = c.j AND c.k = d.k AND a.n % 3 <> d.n % 5"""


def moody(seed: int, batches: int = 25) -> dict[str, pa.Table]:
    """Streams whose keys are drawn from few or from many values, which changes every second."""
    generator = np.random.default_rng(seed)
    rows = batches * 10
    tables = {}
    for name in "abcd":
        times = np.sort(generator.integers(0, batches * 1_000_000, rows))
        domains = generator.integers(2, 12, (2, batches))[:, times // 1_000_000]
        keys = generator.integers(0, domains)
        columns = {"k": keys[0], "j": keys[1], "n": np.arange(rows)}
        tables[name] = pa.table({"ts": pa.array(times, pa.timestamp("us")), **columns})
    return tables


def test_a_watch_counts_what_an_engine_does() -> None:
    text = "SELECT a.n AS an FROM a [RANGE 100 SECONDS], b [RANGE 100 SECONDS] WHERE a.k = b.k AND a.n > 1"
    tables = {
        "a": pa.table({"ts": _at(1, 5, 3, 4), "k": [1, 1, 2, 3], "n": [1, 2, 3, 4]}),
        "b": pa.table({"ts": _at(1, 2, 2, 9), "k": [1, 1, 3, 9], "n": [1, 2, 3, 4]}),
    }
    arrivals = {name: Arrival(name, table, "ts", "10 seconds") for name, table in tables.items()}
    query = parse(text, {name: arrival.stream for name, arrival in arrivals.items()})
    engine = Engine(lower(Plan.of(query, None)))
    watch = Watch(engine)
    (segments,) = steps(arrivals.values(), 10, [])
    engine.step(segments)
    seen = watch.observe(segments)
    a = seen.streams["a"]
    b = seen.streams["b"]
    assert (a.received, a.entered, a.held, a.late) == (4, 3, 3, 0), "one row of a is left out by its selection"
    assert (a.newest, a.behind) == (5_000_000, 2_000_000)
    assert (b.newest, b.behind) == (9_000_000, 0)
    fanouts = {head: (fanout.rows, fanout.combinations) for (head, _), fanout in seen.fanouts.items()}
    assert fanouts == {"a": (3, 0), "b": (4, 3)}, "b comes after a: key 1 twice, key 3 once"
    assert seen.keys["a", 0].distinct == pytest.approx(3, rel=0.01)
    assert seen.keys["b", 0].distinct == pytest.approx(3, rel=0.01)
    assert seen.keys["b", 0].frequent() == {}, "so few rows make nothing frequent"
    assert seen.work > 0


def test_rows_that_get_new_ids_are_not_counted_as_new(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows get new ids when expired rows are removed from behind the first row of a, which lives long."""
    monkeypatch.setattr(window, "SMALLEST_CAPACITY", 4)
    text = "SELECT a.n AS an FROM a [RANGE 3 SECONDS], b [RANGE 3 SECONDS] WHERE a.k = b.k"
    times = {"a": [1_000, *range(60)], "b": range(60)}
    tables = {
        name: pa.table({"ts": _at(*times[name]), "k": [1] * len(times[name]), "n": [1] * len(times[name])})
        for name in times
    }
    lateness = {"a": "1 hour", "b": "0 seconds"}
    arrivals = {name: Arrival(name, table, "ts", lateness[name]) for name, table in tables.items()}
    engine = Engine(lower(Plan.of(parse(text, {name: arrival.stream for name, arrival in arrivals.items()}), None)))
    for segments in steps(arrivals.values(), 6, []):
        watch = Watch(engine)
        engine.step(segments)
        seen = watch.observe(segments)
        for (head, _), fanout in seen.fanouts.items():
            assert fanout.rows == seen.streams[head].entered


def _at(*seconds: int) -> pa.Array:
    return pa.array([second * 1_000_000 for second in seconds], pa.timestamp("us"))


def test_cacq_adapts_although_its_first_plan_is_a_tree(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "braid.hosts.local.controller")
    tables = moody(1)
    tree = ("d", ("b", "a"), "c")
    result = braid.run(MOODY, tables, batch_rows=10, plan=tree, strategy="cacq", adapt=EAGER)
    assert_same_rows(result, oracle(MOODY, tables))
    assert "another order saves" in caplog.text


PARTS = """SELECT a.n AS an, b.n AS bn, c.n AS cn FROM a [RANGE 1 SECOND], b [RANGE 1 SECOND], c [RANGE 1 SECOND]
           WHERE a.k = b.k AND b.k = c.k"""


def opposed(kind: str, rows: int = 16_000, seconds: int = 8, until: int = 5) -> dict[str, pa.Table]:
    """Up to a moment, some keys match in b and hardly in c, and others in c and hardly in b; then all keys are rare."""
    generator = np.random.default_rng(1)
    times = np.sort(generator.integers(0, seconds * 1_000_000, rows))

    def keys(share: float, frequent: np.ndarray) -> pa.Table:
        rare = generator.integers(1_000, 5_000, rows)
        is_rare = (generator.random(rows) >= share) | (times >= until * 1_000_000)
        chosen = np.where(is_rare, rare, frequent)
        return pa.table({"ts": pa.array(times, pa.timestamp("us")), "k": chosen, "n": np.arange(rows)})

    low, high, any_of = (generator.integers(first, last, rows) for first, last in ((0, 20), (20, 40), (0, 40)))
    if kind == "frequent keys":
        others = generator.integers(1, 21, rows)
        in_a = np.where(generator.random(rows) < 0.3, 0, others)
        return {"a": keys(0.9, in_a), "b": keys(0.5, np.zeros(rows, np.int64)), "c": keys(0.9, others)}
    if kind == "ranges":
        return {"a": keys(0.9, any_of), "b": keys(0.9, low), "c": keys(0.9, high)}
    return {"a": keys(0.9, any_of), "b": keys(0.9, 2 * low), "c": keys(0.9, 2 * (high - 20) + 1)}


@pytest.mark.parametrize(
    ("kind", "shown"), [("frequent keys", "k in (0"), ("ranges", "k "), ("hashes", "hash classes")]
)
def test_keys_that_need_opposite_orders_get_them_and_lose_them_again(kind: str, shown: str) -> None:
    tables = opposed(kind)
    result, adaptation = adaptive_run(PARTS, tables, 1_000)
    assert_same_rows(result, oracle(PARTS, tables))
    changes = adaptation.history.changes
    divided = [change for change in changes if "an order of their own" in change.reason and change.verdict == "kept"]
    assert shown in divided[0].reason
    assert divided[0].measured is not None and divided[0].measured > 0.3
    assert any("orders by part save less than 10%" in change.reason for change in changes)
    assert not adaptation.plan.parts
