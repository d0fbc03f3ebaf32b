"""The costs of plans by hand, the best plans under them, and the history of changes."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

from braid.adapt.costing import Costing
from braid.adapt.history import History, RecordedChange
from braid.language import parse
from braid.model.plan import Plan
from braid.model.statistics import Statistics
from braid.model.stream import Stream
from braid.model.tree import Leaf, Merge, merges
from braid.planning.cost.models import EngineTime
from braid.testing.worlds import star

UNIT = EngineTime(lookup=1.0, match=10.0, scan=0.5, update=100.0)
THREE = Statistics(
    rates={"a": 2.0, "b": 3.0, "c": 5.0},
    populations={"a": 20.0, "b": 30.0, "c": 50.0},
    selectivities={frozenset("ab"): 0.1, frozenset("bc"): 0.01, frozenset("ac"): 0.01},
)


def test_a_sequence_costs_its_lookups_and_matches() -> None:
    """Head a: 2 lookups in b find 6 matches; these are looked up in c and find 6 * 50 * 0.01 = 3 matches."""
    query = star(3)
    costing = Costing(query, THREE, UNIT)
    plans = [Plan.of(query, {"a": order, "b": ["a", "c"], "c": ["a", "b"]}) for order in (["b", "c"], ["c", "b"])]
    a_first = 2 + 6 * 10 + 6 + 3 * 10
    a_second = 2 + 1 * 10 + 1 + 3 * 10
    assert costing.cost(plans[0]) - costing.cost(plans[1]) == pytest.approx(a_first - a_second)
    assert costing.best(plans[0]).sequences["a"] == ("c", "b")


def test_a_join_without_an_equality_scans_the_window() -> None:
    query = parse("SELECT a.n FROM a [RANGE 9 SECONDS], b [RANGE 9 SECONDS] WHERE a.k < b.k")
    statistics = Statistics(
        rates={"a": 2.0, "b": 3.0}, populations={"a": 4.0, "b": 8.0}, selectivities={"a.k < b.k": 0.5}
    )
    cost = Costing(query, statistics, UNIT).cost(Plan.in_text_order(query))
    assert cost == pytest.approx((2 * 8 * 0.5 + 2 * 8 * 0.5 * 10) + (3 * 4 * 0.5 + 3 * 4 * 0.5 * 10))


def test_a_band_costs_lookups_and_no_scan() -> None:
    schema = pa.schema([("ts", pa.timestamp("us")), ("k", pa.int64())])
    condition = "ABS((a.k - b.k)) <= 1"
    query = parse(
        f"SELECT a.k FROM a [RANGE 9 SECONDS], b [RANGE 9 SECONDS] WHERE {condition}",
        {name: Stream(name, schema, "ts") for name in "ab"},
    )
    statistics = Statistics(
        rates={"a": 2.0, "b": 3.0}, populations={"a": 4.0, "b": 8.0}, selectivities={condition: 0.5}
    )
    plan = Plan.in_text_order(query)
    assert Costing(query, statistics, UNIT).cost(plan) == pytest.approx((2 + 2 * 8 * 0.5 * 10) + (3 + 3 * 4 * 0.5 * 10))


def test_heads_that_violate_the_cost_invariant_are_named() -> None:
    query = star(3)
    costing = Costing(query, THREE, UNIT)
    assert costing.out_of_order(costing.best(Plan.in_text_order(query))) == ()
    worse = Plan.of(query, {"a": ["b", "c"], "b": ["c", "a"], "c": ["a", "b"]})
    assert costing.out_of_order(worse) == ("a",)
    assert costing.out_of_order(worse, tolerance=10.0) == ()


def test_a_tree_keeps_the_results_of_inner_joins() -> None:
    """(a b) yields 12 rows a second and holds 60; joined with c it yields 60 * 5 * .01 + 12 * 50 * .01 = 9."""
    costing = Costing(star(3), THREE, UNIT)
    tree = Merge((Merge((Leaf("a"), Leaf("b"))), Leaf("c")))
    lower = (2 + 3) * 1 + 12 * 10
    upper = 12 * (100 + 1) + 5 * 1 + 9 * 10
    assert costing.tree_cost(tree) == pytest.approx(lower + upper)
    written = Plan.of(star(3), (("a", "b"), "c"))
    assert costing.cost(written) == costing.tree_cost(tree)
    best = costing.best(written)
    assert best.tree is not None
    assert costing.cost(best) < costing.cost(written)
    missing = {frozenset("ac"): 20 * 50 * 0.01, frozenset("bc"): 30 * 50 * 0.01}[next(_inner(best))]
    assert costing.transition(written, best) == pytest.approx(missing * (100 + 10))
    assert costing.transition(best, best) == 0


def _inner(plan: Plan) -> Iterator[frozenset[str]]:
    assert plan.tree is not None
    return (merge.streams for merge in merges(plan.tree) if merge is not plan.tree)


def test_a_join_of_many_inputs_costs_the_same_as_its_sequences() -> None:
    costing, query = Costing(star(3), THREE, UNIT), star(3)
    node = Merge((Leaf("a"), Leaf("b"), Leaf("c")))
    in_order = Plan.of(query, {"a": ["b", "c"], "b": ["a", "c"], "c": ["a", "b"]})
    assert costing.tree_cost(node) == pytest.approx(costing.cost(in_order))


def test_many_streams_are_planned_greedily() -> None:
    query = star(9)
    generator = np.random.default_rng(1)
    statistics = Statistics(
        rates=dict.fromkeys(query.aliases, 10.0),
        populations={alias: float(generator.integers(10, 1_000)) for alias in query.aliases},
        selectivities={f"a.k = {alias}.k": 0.01 for alias in query.aliases[1:]},
    )
    costing = Costing(query, statistics)
    assert costing.out_of_order(costing.best(Plan.in_text_order(query))) == ()


def test_measured_fan_outs_come_before_products_of_shares() -> None:
    """By its shares, a row of a makes 3 pairs with b and 0.5 with c; the two together were measured."""
    measured = {("a", frozenset("abc")): 7.0, ("a", frozenset("ab")): 0.0}
    figures = Costing(star(3), replace(THREE, fanouts=measured), UNIT).problem.figures
    a, b, c = 1, 2, 4
    assert figures.flow(0, a | b) == 0
    assert figures.flow(0, a | c) == pytest.approx(2 * 0.5)
    assert figures.flow(0, a | b | c) == pytest.approx(2 * 7)
    assert figures.flow(1, a | b) == pytest.approx(3 * 20 * 0.1), "b was not measured"
    assert figures.rate(a | b | c) == pytest.approx(2 * 7 + figures.flow(1, a | b | c) + figures.flow(2, a | b | c))


def test_what_was_not_measured_grows_from_the_largest_measured_part() -> None:
    four = Statistics(
        rates=dict.fromkeys("abcd", 1.0),
        populations=dict.fromkeys("abcd", 10.0),
        selectivities={frozenset(pair): 0.1 for pair in combinations("abcd", 2)},
        fanouts={("a", frozenset("ab")): 5.0, ("a", frozenset("abc")): 40.0},
    )
    figures = Costing(star(4), four, UNIT).problem.figures
    assert figures.flow(0, 0b1111) == pytest.approx(40 * 10 * 0.1)
    assert figures.flow(0, 0b1011) == pytest.approx(5 * 10 * 0.1)


def test_a_change_without_a_trial_is_measured_once_some_batches_have_run() -> None:
    plan, history = Plan.in_text_order(star(2)), History()
    for work in [100.0, 8.0, 8.0]:
        history.count(work, arrived=True)
    history.record(RecordedChange(4, 7.5, "why", plan.written, plan.written, "asked for"))
    for work in [8.0, 8.0]:
        history.count(work, arrived=False)
    for work in [1.0, 2.0, 3.0]:
        history.measure_batches()
        assert history.changes[0].work_measured is None
        history.count(work, arrived=True)
    history.measure_batches()
    history.count(99.0, arrived=True)
    history.measure_batches()
    (change,) = history.changes
    assert (change.work_before, change.work_measured, change.measured) == (8.0, 2.0, 0.75)
