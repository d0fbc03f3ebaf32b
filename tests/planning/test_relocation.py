"""Joins that go to other sites: what cannot be moved is said."""

import pytest

import braid
from braid.model.network.sites import Site
from braid.planning.deployment import Deployment
from braid.planning.relocation import drained, moved

TEXT = "SELECT * FROM a [RANGE 9 SECONDS], b [RANGE 9 SECONDS] WHERE a.k = b.k"
KNOWN = braid.Statistics(rates={"a": 10, "b": 20}, selectivities={"a.k = b.k": 0.01}, sites={"a": "paris", "b": "lyon"})
NETWORK = braid.Topology.from_links([("paris", "lyon", 0.004), ("lyon", "nice", 0.006)])


def planned(planner: str = "exact") -> Deployment:
    return braid.plan(TEXT, KNOWN, NETWORK, planner=planner, sink="lyon")


def test_a_join_moves_to_another_site() -> None:
    assert "a ⋈ b at nice" in moved(planned(), "a ⋈ b", "nice").explain()


def test_no_join_is_left_at_a_site_that_is_drained() -> None:
    assert "a ⋈ b at lyon" in planned().explain()
    assert "a ⋈ b at lyon" not in drained(planned(), "lyon").explain()


def test_what_cannot_be_moved_is_said() -> None:
    with pytest.raises(braid.PlanError, match="the plan has no join 'a ⋈ c'; did you mean 'a ⋈ b'"):
        moved(planned(), "a ⋈ c", "nice")
    with pytest.raises(braid.TopologyError, match="has no site 'rome'"):
        moved(planned(), "a ⋈ b", "rome")
    with pytest.raises(braid.PlanError, match="only joins of a tree can be moved one by one"):
        moved(planned("greedy"), "a ⋈ b", "nice")


def test_the_last_site_cannot_be_drained() -> None:
    alone = braid.Topology((Site("paris"),), ())
    here = braid.Statistics(rates=KNOWN.rates, selectivities=KNOWN.selectivities, sites={"a": "paris", "b": "paris"})
    plan = braid.plan(TEXT, here, alone, sink="paris")
    with pytest.raises(braid.PlanError, match="'paris' is the only site of the network"):
        drained(plan, "paris")
