"""Partitioned joins: example 1 of the PMJoin paper, the partition functions, and the choice of joins."""

from dataclasses import replace
from itertools import pairwise
from math import inf, nan

import numpy as np
import pytest

import braid
from braid.errors import PlanningError
from braid.model.network.generators import fully_connected
from braid.model.partitions import RangePartition
from braid.model.program import ALWAYS, Join, Ship
from braid.model.statistics import Statistics
from braid.model.tree import Leaf, Merge
from braid.planning.cost.histograms import value_rates
from braid.planning.cost.models import MODELS
from braid.planning.partition.find import choose_partitions, find_partitions
from braid.planning.partition.functions import FUNCTIONS, by_hash, by_range, by_rate, ranks
from braid.planning.partition.pmjoin import PMJoin
from braid.planning.partition.values import ByValue
from braid.planning.plan import plan
from braid.planning.problem import Problem
from tests.planning.partition.conftest import EXAMPLE_1, KNOWN, TABLE_1


def test_example_1_table_1() -> None:
    figures = plan(EXAMPLE_1, KNOWN, fully_connected(3)).solution.problem.figures
    assert [figures.rate(1 << stream) for stream in range(3)] == pytest.approx([100.2, 50.07, 50.03])
    assert [figures.rate(mask) for mask in (0b011, 0b101, 0b110)] == pytest.approx([9.003, 7.001, 2.0008])
    values, counts, rates = value_rates([TABLE_1[stream] for stream in ("S1", "S2", "S3")])
    by_value = ByValue(("S1", "S2", "S3"), rates, counts, np.full(3, 0.5))
    rates_of_pairs = [(0.003, 5, 1.5), (5, 0.001, 0.5), (4, 2, 0.0008)]
    for position, (value, expected) in enumerate(zip(values, rates_of_pairs, strict=True)):
        part = by_value.part(np.arange(3) == position)
        assert [part.rate(mask) for mask in (0b011, 0b101, 0b110)] == pytest.approx(expected), value


def test_example_1_all_at_one_site() -> None:
    assert plan(EXAMPLE_1, KNOWN, fully_connected(3), planner="simple", cost="communication").cost == pytest.approx(
        100.1
    )


@pytest.mark.parametrize("planner", ["stream_join_opt", "optimal", "left_deep", "exact"])
def test_example_1_distributed(planner: str) -> None:
    deployment = plan(EXAMPLE_1, KNOWN, fully_connected(3), planner=planner, cost="communication")
    assert deployment.cost == pytest.approx(54.03, abs=0.005)


@pytest.mark.parametrize("function", ["rate", "range"])
def test_example_1_partitioned(function: str) -> None:
    deployment = plan(EXAMPLE_1, KNOWN, fully_connected(3), planner=PMJoin(3, function), cost="communication")
    assert deployment.cost == pytest.approx(0.036 + 0.012 + 0.0216)
    assert round(deployment.cost, 2) == 0.07
    (join,) = deployment.solution.joins
    assert {part.values: part.site for part in join.parts} == {("a",): "n2", ("b",): "n1", ("c",): "n0"}
    assert "part 0 (1 values)" in deployment.explain()
    # Each part is joined at its cheapest site, so few rows are shipped.
    assert set(deployment.programs) == {"n0", "n1", "n2"}


def test_the_results_of_parts_are_delivered_from_their_sites() -> None:
    apart = plan(EXAMPLE_1, KNOWN, fully_connected(3), planner=PMJoin(3), cost="communication").cost
    deployment = plan(EXAMPLE_1, KNOWN, fully_connected(3), planner=PMJoin(3), cost="communication", sink="n0")
    leaving = sum(charge.amount for charge in deployment.bill.charges if charge.what.startswith("deliver"))
    assert leaving > 0
    assert deployment.cost == pytest.approx(apart + leaving)


def test_without_histograms_there_is_one_plan() -> None:
    known = Statistics(
        rates=KNOWN.rates,
        selectivities={"S1.dest = S2.dest": 0.001, "S2.dest = S3.dest": 0.001},
        sites=KNOWN.sites,
    )
    deployment = plan(EXAMPLE_1, known, fully_connected(3), planner="pmjoin", cost="communication")
    assert deployment.solution.joins == ()
    plain = plan(EXAMPLE_1, known, fully_connected(3), planner="stream_join_opt", cost="communication")
    assert deployment.cost == plain.cost
    assert deployment.programs == plain.programs


@pytest.mark.parametrize("function", sorted(FUNCTIONS))
def test_with_empty_histograms_there_is_one_plan(function: str) -> None:
    known = replace(KNOWN, histograms={f"{stream}.dest": {} for stream in TABLE_1})
    deployment, plain = (
        plan(EXAMPLE_1, known, fully_connected(3), planner=planner, cost="communication", sink="n0")
        for planner in (PMJoin(3, function), "stream_join_opt")
    )
    assert deployment.solution.joins == ()
    assert deployment.cost == plain.cost > 0
    assert deployment.programs == plain.programs


@pytest.mark.parametrize("function", sorted(FUNCTIONS))
def test_ranges_are_planned_like_their_values(function: str) -> None:
    """The same rates of a thousand values, given as ten ranges or value by value."""
    generator = np.random.default_rng(3)
    rates = {stream: generator.pareto(1.0, 10) + 0.01 for stream in TABLE_1}
    ranges = {
        stream: {(first, first + 99): float(rate) for first, rate in zip(range(0, 1_000, 100), row, strict=True)}
        for stream, row in rates.items()
    }
    values = {
        stream: {value: rate / 100 for (first, last), rate in row.items() for value in range(first, last + 1)}
        for stream, row in ranges.items()
    }
    known = replace(KNOWN, rates={stream: float(row.sum()) for stream, row in rates.items()})
    of_ranges, of_values = (
        plan(
            EXAMPLE_1,
            replace(known, histograms={f"{stream}.dest": row for stream, row in histograms.items()}),
            fully_connected(3),
            planner=PMJoin(5, function),
            cost="communication",
        )
        for histograms in (ranges, values)
    )
    assert [part.count for part in of_ranges.solution.joins[0].parts] == [200] * 5 or function != "range"
    # The hash function distributes a few pieces of ranges instead of a thousand values.
    assert of_ranges.cost == pytest.approx(of_values.cost, rel=0.2 if function == "hash" else 1e-9)


def test_a_range_may_have_any_number_of_values() -> None:
    """Each stream has 10 ** 30 values; 40% of them are in both."""
    many = 10**30
    histograms = {"a.k": {(0, many - 1): 7.0}, "b.k": {(6 * many // 10, 16 * many // 10 - 1): 5.0}}
    known = Statistics(rates={"a": 7, "b": 5}, sites={"a": "n0", "b": "n1"}, histograms=histograms)
    text = "SELECT * FROM a [RANGE 1 SECOND], b [RANGE 1 SECOND] WHERE a.k = b.k"
    for planner in ("exact", *(PMJoin(4, function) for function in FUNCTIONS)):
        deployment = plan(text, known, fully_connected(2), planner=planner, cost="communication", sink="n0")
        assert deployment.solution.problem.figures.rate(0b11) == pytest.approx(2 * 7 * 5 * 0.4 / many)


def test_nan_is_one_value_and_the_greatest_number() -> None:
    histograms = {"a.k": {nan: 1.0, 2.0: 3.0, 5.0: 4.0}, "b.k": {7.0: 1.0, -nan: 2.0}}
    by_value = value_rates(list(histograms.values()))
    assert repr(by_value.values) == "(2.0, 5.0, 7.0, nan)"
    assert by_value.rates.tolist() == [[3.0, 4.0, 0.0, 1.0], [0.0, 0.0, 1.0, 2.0]]
    known = Statistics(rates={"a": 8, "b": 3}, sites={"a": "n0", "b": "n1"}, histograms=histograms)
    text = "SELECT * FROM a [RANGE 1 SECOND], b [RANGE 1 SECOND] WHERE a.k = b.k"
    for function in FUNCTIONS:
        assert plan(text, known, fully_connected(2), planner=PMJoin(4, function), sink="n0").programs


def test_every_number_is_in_one_range() -> None:
    (tied,) = EXAMPLE_1.graph.classes
    limits = [None, -1.5, 7.0, None]
    ranges = [RangePartition(tied, *pair) for pair in pairwise(limits)]
    for value, expected in {-inf: 0, -2.0: 0, -1.5: 1, 6.9: 1, 7.0: 2, inf: 2, nan: 2}.items():
        assert [part.covers(value) for part in ranges] == [number == expected for number in range(3)]


def test_one_value_per_part_is_never_worse_than_one_part() -> None:
    generator = np.random.default_rng(4)
    for _ in range(10):
        rates = generator.pareto(1.0, (4, 20)) + 0.01
        names = [f"s{stream}" for stream in range(4)]
        text = f"SELECT * FROM {', '.join(f'{name} [RANGE 1 SECOND]' for name in names)} WHERE " + " AND ".join(
            f"s0.k = {name}.k" for name in names[1:]
        )
        known = Statistics(
            rates=dict(zip(names, rates.sum(axis=1).tolist(), strict=True)),
            sites={name: f"n{site}" for site, name in enumerate(names)},
            histograms={f"{name}.k": dict(enumerate(row.tolist())) for name, row in zip(names, rates, strict=True)},
        )
        one, each = (
            plan(braid.parse(text), known, fully_connected(4), planner=PMJoin(parts), cost="communication").cost
            for parts in (1, 20)
        )
        assert each <= one * 1.001


@pytest.mark.parametrize("function", sorted(FUNCTIONS))
def test_parts_cost_no_more_than_one_part_wherever_the_result_is_wanted(function: str) -> None:
    """If results are larger than the inputs, it is cheaper to make them at the sink, without parts."""
    generator = np.random.default_rng(1)
    names = [f"s{stream}" for stream in range(4)]
    windows = ", ".join(f"{name} [RANGE 1 SECOND]" for name in names)
    text = f"SELECT * FROM {windows} WHERE " + " AND ".join(f"s0.k = {name}.k" for name in names[1:])
    cheaper = 0
    for _ in range(20):
        rates = generator.pareto(1.0, (4, 20)) * generator.choice([0.1, 10.0]) + 0.01
        known = Statistics(
            rates=dict(zip(names, rates.sum(axis=1).tolist(), strict=True)),
            sites={name: f"n{site}" for site, name in enumerate(names)},
            histograms={f"{name}.k": dict(enumerate(row.tolist())) for name, row in zip(names, rates, strict=True)},
        )
        one_part, eight_parts = (
            plan(text, known, fully_connected(4), planner=PMJoin(parts, function), cost="communication", sink="n0")
            for parts in (1, 8)
        )
        assert eight_parts.cost <= one_part.cost
        cheaper += eight_parts.cost < one_part.cost
        # With one part, all rows are shipped to the same sites, and no guard is needed.
        for program in one_part.programs.values():
            assert all(instruction.guard == ALWAYS for instruction in [*program.all_of(Join), *program.all_of(Ship)])
    assert cheaper > 5


def test_partition_functions() -> None:
    rates = np.array([[5.0, 5, 1, 1, 9, 9], [1, 1, 5, 5, 2, 2], [3, 3, 3, 3, 1, 1]])
    assert ranks(rates)[[0, 2, 4]].tolist() == [[3, 1, 2], [1, 3, 2], [3, 2, 1]]
    labels = by_rate(rates, 3)
    assert labels[0] == labels[1] != labels[2] == labels[3] != labels[4] == labels[5]
    assert by_range(rates, 4).tolist() == [0, 0, 1, 2, 2, 3]
    spread = np.bincount(by_hash(np.zeros((1, 10_000)), 10))
    assert len(spread) == 10
    assert spread.min() > 900


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"function": "rates"}, "did you mean 'rate'"),
        ({"function": None}, "a partition function must be a string, not None"),
        ({"parts": 0}, "parts of a key space must be 1 or more, not 0"),
    ],
)
def test_invalid_options(options: dict[str, object], message: str) -> None:
    with pytest.raises(PlanningError, match=message):
        PMJoin(**options)


SEVERAL = braid.parse(
    """SELECT * FROM a [RANGE 1 SECOND], b [RANGE 1 SECOND], c [RANGE 1 SECOND], d [RANGE 1 SECOND], e [RANGE 1 SECOND]
    WHERE a.x = b.x AND b.x = c.x AND c.y = d.y AND d.z = e.z"""
)


def several() -> Problem:
    known = Statistics(
        rates={"a": 1, "b": 2, "c": 30, "d": 40, "e": 500},
        selectivities={"a.x = b.x": 0.1, "b.x = c.x": 0.1, "c.y = d.y": 0.1, "d.z = e.z": 0.1},
        sites=dict.fromkeys("abcde", "n0"),
    )
    return Problem.of(SEVERAL, known, fully_connected(2), MODELS["communication"])


def test_nulls_in_histograms_match_nothing() -> None:
    """A histogram of a column may count its nulls."""
    query = braid.parse("SELECT * FROM a [RANGE 1 SECOND], b [RANGE 1 SECOND] WHERE a.k = b.k")
    histograms = {"a.k": {None: 5.0, 1: 3.0, 2: 2.0}, "b.k": {None: 6.0, 1: 1.0, 3: 3.0}}
    known = Statistics(rates={"a": 10, "b": 10}, sites={"a": "n0", "b": "n1"}, histograms=histograms)
    assert Problem.of(query, known, fully_connected(2), MODELS["communication"]).figures.population(0b11) == 3.0
    for function in FUNCTIONS:
        deployment = plan(query, known, fully_connected(2), planner=PMJoin(3, function), cost="communication")
        assert deployment.cost <= 5.0
        assert deployment.programs


@pytest.mark.parametrize("function", sorted(FUNCTIONS))
@pytest.mark.parametrize("parts", [1, 3])
def test_rows_without_a_value_are_neither_charged_nor_shipped(function: str, parts: int) -> None:
    query = braid.parse("SELECT * FROM a [RANGE 1 SECOND], b [RANGE 1 SECOND] WHERE a.k = b.k")
    histograms: dict[str, dict[int | None, float]] = {"a": {None: 90.0, 1: 6.0, 2: 4.0}, "b": {1: 100.0, 2: 100.0}}
    known = Statistics(
        rates={"a": 100, "b": 200},
        sites={"a": "n0", "b": "n1"},
        histograms={f"{stream}.k": rates for stream, rates in histograms.items()},
    )
    deployment = plan(query, known, fully_connected(2), planner=PMJoin(parts, function), cost="communication")
    ships = [ship for program in deployment.programs.values() for ship in program.all_of(Ship)]
    shipped = sum(
        rate
        for ship in ships
        for value, rate in histograms[ship.stream].items()
        if ship.guard.partitions is None or ship.guard.partitions.covers(value)  # type: ignore[union-attr]
    )
    assert deployment.cost == pytest.approx(shipped) == pytest.approx(10.0)


def test_joins_on_the_same_attribute_are_absorbed() -> None:
    lower = Merge((Leaf("a"), Leaf("b")))
    upper = Merge((lower, Leaf("c")))
    root = Merge((upper, Leaf("d")))
    candidates = find_partitions(several(), Merge((root, Leaf("e"))))
    assert [(join.merge.streams, join.inputs) for join in candidates] == [
        (frozenset("abcde"), (root, Leaf("e"))),
        (frozenset("abcd"), (upper, Leaf("d"))),
        (frozenset("abc"), (Leaf("a"), Leaf("b"), Leaf("c"))),
    ]
    # The largest is chosen; the join below it is not; the one below that is chosen again.
    assert [join.merge.streams for join in choose_partitions(several(), candidates)] == [
        frozenset("abcde"),
        frozenset("abc"),
    ]


def test_the_last_input_of_a_join_cannot_be_partitioned() -> None:
    right = Merge((Leaf("a"), Leaf("b")))
    assert find_partitions(several(), Merge((Leaf("d"), Leaf("e"), right))) == []
    assert [join.merge for join in find_partitions(several(), Merge((right, Leaf("d"), Leaf("e"))))] == [right]
    # Nor if the join above absorbs the join it is the last input of, because that join may not be chosen.
    right = Merge((Leaf("d"), Leaf("c")))
    whole = Merge((Merge((Leaf("a"), right)), Leaf("b")))
    (candidate,) = find_partitions(several(), whole)
    assert candidate.inputs == (Leaf("a"), right, Leaf("b"))
