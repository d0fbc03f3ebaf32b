"""Theorems 2 to 4 of the IFLOW paper, on random networks and queries."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from braid.model.network.generators import random_geometric, transit_stub
from braid.planning.cluster.bottom_up import BottomUp
from braid.planning.cluster.hierarchies import hierarchy_of
from braid.planning.cluster.npc import NetPresentCost
from braid.planning.cluster.top_down import TopDown
from braid.planning.deployment import Deployment
from braid.planning.order.exhaustive import search_space
from braid.workloads.synthetic import synthetic
from braid.workloads.workload import Workload

cases = st.tuples(st.sampled_from([3, 4, 6, 10]), st.integers(0, 1_000), st.booleans())


def workload_of(seed: int, geometric: bool) -> Workload:
    if geometric:
        return synthetic(random_geometric(30, seed=seed), streams=6, queries=4, joins=(2, 4), seed=seed)
    network = transit_stub(transit_nodes=2, stubs_per_transit=2, stub_nodes=7, seed=seed)
    return synthetic(network, streams=6, queries=4, joins=(2, 4), seed=seed)


def most_considered(deployment: Deployment, max_cs: int) -> int:
    """The bound of theorems 2 and 4: the plans of an exhaustive search in one full cluster on each level.

    Net present cost may in addition, on each level below the top, plan the joins of all streams but one before it
    decides to wait; that takes one search in a full cluster on each level from there down.
    """
    problem = deployment.solution.problem
    streams, height = len(problem.streams), hierarchy_of(problem, max_cs).height
    waiting = range(1, height) if deployment.planner == "npc" else ()
    return height * search_space(streams, max_cs) + sum(level * search_space(streams - 1, max_cs) for level in waiting)


def check_distance_to_optimum(workload: Workload, max_cs: int) -> None:
    """Theorem 3: how much more than the optimum the plans of Top-Down may cost."""
    best = list(workload.solve("exact", reuse=False))
    for optimum, deployment in zip(best, workload.solve(TopDown(max_cs), reuse=False), strict=True):
        hierarchy = hierarchy_of(deployment.solution.problem, max_cs)
        shipped = sum(charge.volume for charge in deployment.bill.charges)
        assert deployment.cost >= optimum.cost * (1 - 1e-9)
        assert deployment.cost - optimum.cost <= shipped * hierarchy.error(hierarchy.height) + 1e-9


@given(cases)
@settings(max_examples=8, deadline=None)
@pytest.mark.parametrize("planner", [TopDown, BottomUp, NetPresentCost])
def test_search_spaces_are_bounded(planner: type[TopDown], case: tuple[int, int, bool]) -> None:
    max_cs, seed, geometric = case
    for deployment in workload_of(seed, geometric).solve(planner(max_cs)):
        assert deployment.considered <= most_considered(deployment, max_cs)


@given(cases)
@settings(max_examples=8, deadline=None)
def test_top_down_is_not_far_from_the_optimum(case: tuple[int, int, bool]) -> None:
    max_cs, seed, geometric = case
    check_distance_to_optimum(workload_of(seed, geometric), max_cs)


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(150))
@pytest.mark.parametrize("max_cs", [3, 4, 6, 10])
def test_theorems_2_to_4_sweep(seed: int, max_cs: int) -> None:
    workload = workload_of(seed, geometric=seed % 2 == 0)
    for planner in (TopDown(max_cs), BottomUp(max_cs), NetPresentCost(max_cs)):
        for deployment in workload.solve(planner):
            assert deployment.considered <= most_considered(deployment, max_cs)
    check_distance_to_optimum(workload, max_cs)
