"""Orders on trial: results are those of the oracle, bad orders are left at once, good ones take most rows."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from braid.engine.engine import Engine
from braid.engine.join import trial
from braid.engine.segment import Segment
from braid.language import parse
from braid.model.plan import Plan
from braid.model.stream import Stream
from braid.planning.lowering.one_site import lower
from braid.testing import random_case
from braid.testing.changes import random_sequences
from tests.engine.conftest import check_trials

STAR = """SELECT hub.n AS hub, a.n AS a, b.n AS b FROM a [RANGE 100 SECONDS], b [RANGE 100 SECONDS],
          hub [RANGE 100 SECONDS] WHERE hub.x = a.x AND hub.y = b.y"""
MANY_FIRST = {"a": ("hub", "b"), "b": ("hub", "a"), "hub": ("a", "b")}
FEW_FIRST = {"a": ("hub", "b"), "b": ("hub", "a"), "hub": ("b", "a")}


@pytest.mark.parametrize("seed", range(150))
def test_results_on_trial_are_those_of_the_oracle(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In every step another order is on trial against yet another one."""
    check_trials(random_case(seed), seed, monkeypatch, lambda choices, query: random_sequences(choices, query.aliases))


def table(**columns: np.ndarray[Any, Any]) -> pa.RecordBatch:
    count = len(next(iter(columns.values())))
    times = pa.array(np.zeros(count, np.int64), pa.timestamp("us"))
    return pa.RecordBatch.from_pydict({"ts": times, "n": np.arange(count), **columns})


def stars(rows: int) -> dict[str, pa.RecordBatch]:
    """A row of the hub matches a hundred rows of a, and none of b."""
    keys = np.random.default_rng(1).integers(0, 10, (4, rows))
    return {
        "a": table(x=keys[0, :1_000]),
        "b": table(y=10 + keys[1, :1_000]),
        "hub": table(x=keys[2], y=keys[3]),
    }


def spikes(rows: int) -> dict[str, pa.RecordBatch]:
    """One row of the hub in 2,000 matches all rows of a and none of b; the others match one row of b and none of a."""
    is_spike = np.arange(rows) % 2_000 == 7
    return {
        "a": table(x=np.full(10_000, 5)),
        "b": table(y=np.array([1])),
        "hub": table(x=np.where(is_spike, 5, 99), y=np.where(is_spike, 2, 1)),
    }


def try_out(
    streams: dict[str, pa.RecordBatch], new: dict[str, tuple[str, ...]], old: dict[str, tuple[str, ...]]
) -> tuple[Engine, int]:
    """An engine that has taken all rows with a new order on trial, and the number of results."""
    query = parse(STAR, {name: Stream(name, rows.schema, "ts") for name, rows in streams.items()})
    engine = Engine(lower(Plan.of(query, old)))
    engine.change(lower(Plan.of(query, new)), lower(Plan.of(query, old)))
    results = engine.step([Segment(name, rows, 0) for name, rows in streams.items()])
    return engine, sum(batch.num_rows for batch in results)


def work_of(engine: Engine) -> int:
    return sum(join.work for join in engine.counts().joins if join.bound[0] == "hub")


def test_a_bad_order_is_left_in_the_middle_of_a_step() -> None:
    """A row costs a hundred times as much by the new order. The trial ends once it has wasted what it may waste."""
    engine, _ = try_out(stars(20_000), MANY_FIRST, FEW_FIRST)
    (counts,) = engine.counts().trials.values()
    assert counts.left == 1
    assert counts.new_work > counts.old_work
    most_wasted = trial.HARMLESS + trial.MOST_WASTED * 20_000
    assert 20_000 < work_of(engine) < 20_000 + 3 * most_wasted


def test_a_good_order_takes_the_rows_that_are_not_sampled() -> None:
    engine, _ = try_out(stars(20_000), FEW_FIRST, MANY_FIRST)
    (counts,) = engine.counts().trials.values()
    assert (counts.rows, counts.left) == (20_000 // trial.SAMPLE, 0)
    assert counts.old_work > 50 * counts.new_work
    assert work_of(engine) == 20_000 + counts.old_work


def test_heads_with_the_same_order_in_both_plans_are_not_on_trial() -> None:
    engine, _ = try_out(stars(10), FEW_FIRST, MANY_FIRST)
    assert list(engine.counts().trials) == ["hub"]


def test_an_order_is_left_if_rows_that_were_not_sampled_cost_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "SAMPLE", 1_000)
    rows, work_by_old_order, work_of_spike = 40_000, 3, 20_000
    engine, _ = try_out(spikes(rows), MANY_FIRST, FEW_FIRST)
    (counts,) = engine.counts().trials.values()
    assert counts.rows == 1_000, "none of them is a spike: these cost 3,000 by the old order and 1,000 by the new one"
    assert counts.new_work > 2 * counts.old_work, "the old order has also taken a piece with a spike"
    assert work_of(engine) < 1.5 * rows * work_by_old_order
    assert work_of(engine) < rows // 2_000 * work_of_spike / 2, "most rows that match all of a went along the old order"


def test_the_rows_that_cost_most_decide_although_the_sample_lacks_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sampled rows cost a third by the old order; the spikes cost 10,000 times as much by it."""
    monkeypatch.setattr(trial, "SAMPLE", 1_000)
    rows, work_of_spike = 40_000, 20_000
    engine, results = try_out(spikes(rows), FEW_FIRST, MANY_FIRST)
    (counts,) = engine.counts().trials.values()
    assert counts.left == 0
    assert counts.old_work > 2 * counts.new_work, "a piece with a spike has also taken the new order"
    assert work_of(engine) < 1.1 * (rows + rows // 2_000 * work_of_spike), "few rows took both"
    assert results == 0


@pytest.mark.parametrize(("new", "old"), [(FEW_FIRST, MANY_FIRST), (MANY_FIRST, FEW_FIRST)])
def test_rows_that_take_both_orders_give_their_results_once(
    new: dict[str, tuple[str, ...]], old: dict[str, tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial, "SAMPLE", 1_000)
    streams = spikes(20_000) | {"b": table(y=np.array([1, 2]))}
    engine, results = try_out(streams, new, old)
    assert results == 10 * 10_000, "the matches of ten spikes"
    probes = sum(join.probes for join in engine.counts().joins if join.bound == ("hub",))
    assert probes > 20_000 + 1_000, "more rows than the sample took both orders"
