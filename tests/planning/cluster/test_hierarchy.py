"""Clusters: their sizes and coordinators, sites that join and leave, and theorem 1."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from braid.errors import PlanningError
from braid.model.network.generators import random_geometric, transit_stub_128
from braid.planning.cluster.hierarchy import Hierarchy


def check(hierarchy: Hierarchy, sites: set[int]) -> None:
    """Check that each node is in one cluster, no cluster is too large, and the next level has the coordinators."""
    assert set(hierarchy.sites) == sites
    nodes = sites
    for level in hierarchy.levels:
        members = [member for cluster in level for member in cluster.members]
        assert sorted(members) == sorted(nodes)
        assert all(1 <= len(cluster.members) <= hierarchy.max_cs for cluster in level)
        nodes = {cluster.coordinator for cluster in level}
    assert len(hierarchy.levels[-1]) == 1


def check_theorem_1(hierarchy: Hierarchy) -> None:
    for level in range(1, hierarchy.height + 1):
        error = hierarchy.error(level)
        for source in hierarchy.sites:
            for target in hierarchy.sites:
                actual = hierarchy.distances[source, target]
                assert actual <= hierarchy.estimate(source, target, level) + error + 1e-9


@given(st.integers(1, 40), st.integers(2, 9), st.integers(0, 1_000))
@settings(max_examples=12, deadline=None)
def test_theorem_1_on_random_networks(sites: int, max_cs: int, seed: int) -> None:
    hierarchy = Hierarchy.build(random_geometric(sites, seed=seed).distances(), max_cs)
    check(hierarchy, set(range(sites)))
    check_theorem_1(hierarchy)


@given(st.integers(0, 1_000), st.integers(2, 5), st.lists(st.integers(0, 19), min_size=5, max_size=30))
@settings(max_examples=12, deadline=None)
def test_sites_join_and_leave(seed: int, max_cs: int, moves: list[int]) -> None:
    hierarchy = Hierarchy.build(random_geometric(20, seed=seed).distances(), max_cs)
    present = set(range(20))
    for site in moves:
        if site not in present:
            hierarchy = hierarchy.join(site)
            present.add(site)
        elif len(present) > 1:
            hierarchy = hierarchy.leave(site)
            present.remove(site)
        check(hierarchy, present)
    check_theorem_1(hierarchy)


def test_all_leave_and_one_comes_back() -> None:
    hierarchy = Hierarchy.build(random_geometric(9, seed=4).distances(), 3)
    for site in range(8):
        hierarchy = hierarchy.leave(site)
    assert hierarchy.sites == (8,)
    check(hierarchy.join(2), {2, 8})
    with pytest.raises(PlanningError, match="last one"):
        hierarchy.leave(8)
    with pytest.raises(PlanningError, match="already"):
        hierarchy.join(8)
    with pytest.raises(PlanningError, match="not in the hierarchy"):
        hierarchy.leave(1)


def test_near_sites_are_together() -> None:
    topology = transit_stub_128(seed=2)
    hierarchy = Hierarchy.build(topology.distances(), 32)
    inside = np.mean([topology.distances()[np.ix_(c.members, c.members)].mean() for c in hierarchy.levels[0]])
    assert inside < topology.distances().mean() / 2


def test_sites_at_one_place() -> None:
    check(Hierarchy.build(np.zeros((7, 7)), 2), set(range(7)))


@pytest.mark.parametrize("max_cs", [1, 0, -3])
def test_clusters_must_hold_at_least_two_sites(max_cs: int) -> None:
    with pytest.raises(PlanningError, match=f"max_cs cannot be {max_cs}; give 2 or more"):
        Hierarchy.build(np.zeros((2, 2)), max_cs)
