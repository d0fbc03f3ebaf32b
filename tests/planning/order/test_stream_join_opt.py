"""The heuristic of the PMJoin paper: example 2 with its table 2, and comparisons with other planners."""

import pytest

import braid
from braid.model.network.generators import fully_connected
from braid.model.statistics import Statistics
from braid.model.tree import Leaf, Merge
from braid.planning.plan import plan
from braid.workloads.synthetic import synthetic

# Table 2 of the paper. The selectivities of S0-S1, S2-S3 and S0-S2 follow from the rates it gives; the one of S0-S4 is
# not given, and any above 0.0084 leads to the paper's plan.
EXAMPLE_2 = braid.parse(
    """SELECT * FROM S0 [RANGE 10 SECONDS], S1 [RANGE 10 SECONDS], S2 [RANGE 10 SECONDS], S3 [RANGE 10 SECONDS],
    S4 [RANGE 10 SECONDS] WHERE S0.a = S1.a AND S2.b = S3.b AND S0.c = S2.c AND S0.d = S4.d"""
)
TABLE_2 = Statistics(
    rates={"S0": 10, "S1": 35, "S2": 25, "S3": 30, "S4": 15},
    selectivities={"S0.a = S1.a": 0.01, "S2.b = S3.b": 0.001, "S0.c = S2.c": 0.004, "S0.d = S4.d": 0.02},
    sites={"S0": "n0", "S1": "n0", "S2": "n1", "S3": "n1", "S4": "n2"},
)


def test_example_2() -> None:
    deployment = plan(EXAMPLE_2, TABLE_2, fully_connected(3), planner="stream_join_opt", cost="communication")
    at_home = Merge((Leaf("S2"), Leaf("S3")))
    second = Merge((Leaf("S0"), at_home))
    root = Merge((second, Leaf("S4"), Leaf("S1")))
    assert deployment.tree == root
    assert deployment.placement == {at_home: "n1", second: "n1", root: "n0"}
    # S0 is shipped to n1; its join there and S4 are shipped to n0.
    assert deployment.cost == pytest.approx(10 + 9 + 15)


def test_table_2() -> None:
    figures = plan(EXAMPLE_2, TABLE_2, fully_connected(3)).solution.problem.figures
    assert [figures.population(1 << stream) for stream in range(5)] == [100, 350, 250, 300, 150]
    assert figures.rate(0b00011) == pytest.approx(70)
    assert (figures.rate(0b01100), figures.population(0b01100)) == (pytest.approx(15), pytest.approx(75))
    assert (figures.rate(0b01101), figures.population(0b01101)) == (pytest.approx(9), pytest.approx(30))


def test_simple_ships_all_streams_to_the_fastest() -> None:
    deployment = plan(EXAMPLE_2, TABLE_2, fully_connected(3), planner="simple", cost="communication")
    assert list(deployment.placement.values()) == ["n0"]
    assert deployment.cost == pytest.approx(25 + 30 + 15)


def test_local_joins_streams_even_if_that_grows_them() -> None:
    deployment = plan(EXAMPLE_2, TABLE_2, fully_connected(3), planner="local", cost="communication")
    assert Merge((Leaf("S0"), Leaf("S1"))) in deployment.placement


def test_left_deep_adds_one_stream_at_a_time() -> None:
    query = braid.parse(
        """SELECT * FROM a [RANGE 1 SECOND], b [RANGE 1 SECOND], c [RANGE 1 SECOND], d [RANGE 1 SECOND]
        WHERE a.x = b.x AND c.y = d.y AND b.z = c.z"""
    )
    known = Statistics(
        rates=dict.fromkeys("abcd", 100.0),
        selectivities={"a.x = b.x": 0.0001, "c.y = d.y": 0.0001, "b.z = c.z": 1.0},
        sites={"a": "n0", "b": "n0", "c": "n1", "d": "n1"},
    )
    bushy, linear = (plan(query, known, fully_connected(3), planner=name, sink="n2") for name in ("exact", "left_deep"))
    assert all(sum(isinstance(part, Merge) for part in merge.inputs) <= 1 for merge in linear.placement)
    # Each pair is joined at its site to 2 rows a second and shipped to the sink; left-deep, one goes by the other.
    assert {merge.streams for merge in bushy.placement} >= {frozenset("ab"), frozenset("cd")}
    assert bushy.cost == pytest.approx(2 + 2)
    assert linear.cost == pytest.approx(2 + 4)


def test_the_heuristic_is_close_to_the_optimum_and_better_than_simple() -> None:
    workload = synthetic(fully_connected(8), streams=8, queries=30, joins=(4, 7), seed=5)
    costs = {
        planner: sum(deployment.cost for deployment in workload.solve(planner, "communication", reuse=False))
        for planner in ("optimal", "stream_join_opt", "simple")
    }
    assert costs["optimal"] <= costs["stream_join_opt"] <= costs["simple"]
    assert costs["stream_join_opt"] <= 1.25 * costs["optimal"]
