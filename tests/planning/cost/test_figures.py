"""Rates and populations of joins: by hand, by the recursion of the PMJoin paper, and table against single sets."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import braid
from braid.errors import PlanningError
from braid.model.network.generators import star
from braid.model.statistics import Statistics
from braid.planning.cost.figures import Expected
from braid.workloads.synthetic import synthetic

CHAIN = "SELECT * FROM a [RANGE 10 SECONDS], b [RANGE 10 SECONDS], c [ROWS 100] WHERE a.x = b.x AND b.x = c.x"
KNOWN = Statistics(rates={"a": 10, "b": 20, "c": 30}, selectivities={"a.x = b.x": 0.01, "b.x = c.x": 0.02})


def test_rates_and_populations_by_hand() -> None:
    figures = Expected.of(braid.parse(CHAIN), KNOWN)
    assert figures.population(0b011) == pytest.approx(0.01 * 100 * 200)
    assert figures.rate(0b011) == pytest.approx(0.01 * (10 * 200 + 20 * 100))
    # A further join follows the same rule, so the rate does not depend on the order.
    rate, population = figures.rate(0b011), figures.population(0b011)
    assert figures.rate(0b111) == pytest.approx(0.02 * (rate * 100 + 30 * population))
    assert figures.population(0b111) == pytest.approx(0.02 * population * 100)


def test_an_implied_equality_is_as_selective_as_the_weakest_it_follows_from() -> None:
    figures = Expected.of(braid.parse(CHAIN), KNOWN)
    assert figures.rate(0b101) == pytest.approx(0.02 * (10 * 100 + 30 * 100))


def test_a_measured_set_has_its_measured_share() -> None:
    query = braid.parse(CHAIN + " AND a.y < c.y")
    known = {**KNOWN.selectivities, "a.y < c.y": 0.5, frozenset("abc"): 0.001, frozenset("ab"): 0.3}
    figures = Expected.of(query, Statistics(rates=KNOWN.rates, selectivities=known))
    assert figures.population(0b111) == pytest.approx(0.001 * 100 * 200 * 100)
    assert figures.population(0b011) == pytest.approx(0.01 * 100 * 200)  # The selectivity of a predicate comes first.


def test_selectivities_of_pairs_replace_those_of_predicates() -> None:
    by_set = Statistics(rates=KNOWN.rates, selectivities={frozenset("ab"): 0.01, frozenset("bc"): 0.02})
    query = braid.parse(CHAIN)
    assert np.allclose(Expected.of(query, by_set).table.rates, Expected.of(query, KNOWN).table.rates)


@pytest.mark.parametrize(
    ("selectivities", "share"),
    [
        ({}, 0.05),
        ({"a.x = b.x": 0.1}, 0.05),
        ({"a.y < b.y": 0.5}, 0.05),
        ({"a.x = b.x": 0.02}, 0.02),  # All conditions together pass no more than one of them.
        ({"a.x = b.x": 0.1, "a.y < b.y": 0.25}, 0.025),
        ({"a.x = b.x": 0}, 0),
    ],
)
def test_the_selectivity_of_a_pair_covers_all_conditions_between_its_streams(
    selectivities: dict[str, float], share: float
) -> None:
    query = braid.parse("SELECT * FROM a [RANGE 1 SECOND], b [RANGE 1 SECOND] WHERE a.x = b.x AND a.y < b.y")
    known = Statistics(rates={"a": 10, "b": 10}, selectivities={frozenset("ab"): 0.05, **selectivities})
    assert Expected.of(query, known).population(0b11) == pytest.approx(share * 10 * 10)


@pytest.mark.parametrize(
    "texts",
    [("a.x = b.x", "a.y < 3", "a.z > b.z"), ("b.x = a.x", "3 > a.y", "b.z < a.z"), ("a.x=b.x", "a.y<3", "a.z>b.z")],
)
def test_conditions_match_with_sides_exchanged_and_any_spacing(texts: tuple[str, ...]) -> None:
    text = "SELECT * FROM a [RANGE 1 SECOND], b [RANGE 1 SECOND] WHERE a.x = b.x AND a.y < 3 AND a.z > b.z"
    known = Statistics(rates={"a": 8, "b": 1}, selectivities=dict(zip(texts, (0.1, 0.25, 0.5), strict=True)))
    figures = Expected.of(braid.parse(text), known)
    assert figures.rate(0b01) == 2
    assert figures.population(0b11) == pytest.approx(0.1 * 0.5 * 2 * 1)


def test_filters_reduce_rates_and_windows_but_not_measured_populations() -> None:
    query = braid.parse("SELECT * FROM a [RANGE 10 SECONDS], b [RANGE 10 SECONDS] WHERE a.x = b.x AND a.y = 3")
    known = {"a.x = b.x": 0.1, "a.y = 3": 0.25}
    figures = Expected.of(query, Statistics(rates={"a": 8, "b": 1}, selectivities=known))
    assert (figures.rate(1), figures.population(1)) == (2, 20)
    measured = Statistics(rates={"a": 8, "b": 1}, populations={"a": 7}, selectivities=known)
    assert Expected.of(query, measured).population(1) == 7


@pytest.mark.parametrize(
    ("statistics", "message"),
    [
        (Statistics(rates={"a": 1, "b": 1}, selectivities=KNOWN.selectivities), "the rate of stream 'c' is not known"),
        (Statistics(rates=KNOWN.rates), r"selectivity of a\.x = b\.x is not known; give Statistics\(selectivities"),
        (
            Statistics(rates=KNOWN.rates, selectivities=KNOWN.selectivities, sizes={"a": 10}),
            "row size of stream 'b' is not known",
        ),
    ],
)
def test_unknown_figures_are_named(statistics: Statistics, message: str) -> None:
    with pytest.raises(PlanningError, match=message):
        Expected.of(braid.parse(CHAIN), statistics)


def test_a_window_of_unknown_population() -> None:
    query = braid.parse("SELECT * FROM a [UNBOUNDED], b [NOW] WHERE a.x = b.x")
    with pytest.raises(PlanningError, match=r"the window \[UNBOUNDED\] of 'a' holds is not known"):
        Expected.of(query, Statistics(rates={"a": 1, "b": 1}, selectivities={"a.x = b.x": 0.1}))
    known = Statistics(rates={"a": 1, "b": 1}, lengths={"a": 50}, selectivities={"a.x = b.x": 0.1})
    assert Expected.of(query, known).population(1) == 50


@given(st.integers(0, 1_000))
@settings(max_examples=15, deadline=None)
def test_the_table_equals_single_sets_and_the_recursion(seed: int) -> None:
    workload = synthetic(star(3), streams=6, queries=1, joins=(5, 5), seed=seed)
    query = workload.requests[0].query
    figures = Expected.of(query, workload.statistics)
    single = [(figures.rate(mask), figures.population(mask)) for mask in range(1, 64)]
    assert np.allclose(single, np.stack([figures.table.rates, figures.table.populations], axis=1)[1:])
    share = figures.shares.table
    for left in (0b000111, 0b010101, 0b000001):
        right = 0b111111 ^ left
        between = share[0b111111] / (share[left] * share[right])
        rate = figures.rate(left) * figures.population(right) + figures.rate(right) * figures.population(left)
        assert figures.rate(0b111111) == pytest.approx(between * rate)


@given(st.integers(0, 1_000))
@settings(max_examples=40, deadline=None)
def test_the_table_equals_single_sets_where_some_were_measured_as_a_whole(seed: int) -> None:
    generator = np.random.default_rng(seed)
    text = (
        "SELECT * FROM a [RANGE 2 SECONDS], b [RANGE 3 SECONDS], c [RANGE 1 SECOND], d [RANGE 1 SECOND], "
        "e [RANGE 1 SECOND] WHERE a.x = b.x AND b.x = c.x AND c.x = d.x AND d.y = e.y AND a.z < e.z"
    )
    conditions = ("a.x = b.x", "b.x = c.x", "c.x = d.x", "d.y = e.y", "a.z < e.z")
    shares: dict[object, float] = dict(zip(conditions, generator.uniform(0.01, 1, 5).tolist(), strict=True))
    for _ in range(generator.integers(1, 4)):
        chosen = generator.choice(list("abcde"), generator.integers(3, 6), replace=False)
        shares[frozenset(chosen.tolist())] = float(generator.uniform(0.001, 0.1))
    statistics = Statistics(rates=dict.fromkeys("abcde", 3.0), selectivities=shares)
    expected = Expected.of(braid.parse(text), statistics).shares
    assert np.allclose([expected._share(mask) for mask in range(32)], expected.table, rtol=1e-12)


def test_a_share_that_has_faded_to_almost_nothing_makes_no_flow_infinite() -> None:
    """Measured at different times, a part of a join may seem rarer than the whole. Found by a controller that froze."""
    windows = ", ".join(f"{name} [RANGE 10 SECONDS]" for name in "abc")
    query = braid.parse(f"SELECT * FROM {windows} WHERE a.k = b.k AND b.k = c.k")
    statistics = Statistics(
        rates={"a": 10, "b": 20, "c": 30},
        selectivities={frozenset("ab"): 5e-324, frozenset("bc"): 0.1, frozenset("ac"): 0.1, frozenset("abc"): 0.01},
        fanouts={("a", frozenset("ab")): 0.5},
    )
    assert Expected.of(query, statistics).flow(0, 0b111) <= 10 * 0.5 * 300
