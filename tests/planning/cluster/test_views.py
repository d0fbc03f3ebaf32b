"""Planners over clusters use derived streams that other queries advertise."""

import pytest

import braid
from braid.model.advertisement import Advertisement
from braid.model.statistics import Statistics
from braid.model.tree import Reused, leaves
from braid.planning.cluster.bottom_up import BottomUp
from braid.planning.cluster.npc import NetPresentCost
from braid.planning.cluster.top_down import TopDown
from braid.testing.networks import CHAIN, TWO_SIDES


@pytest.mark.parametrize("planner", [TopDown(3), BottomUp(3), NetPresentCost(3)])
def test_an_advertised_join_replaces_one_planned_at_a_lower_level(planner: TopDown | BottomUp) -> None:
    """Bottom-Up first plans to join a and b on the left. One level up it sees that their join is advertised at r1."""
    known = Statistics(
        rates={"a": 1, "b": 1, "c": 100},
        selectivities={"a.k = b.k": 0.5, "b.j = c.j": 1e-5},
        sites={"a": "l1", "b": "l2", "c": "r1"},
    )
    joined = braid.parse("SELECT * FROM a [RANGE 10 SECONDS], b [RANGE 10 SECONDS] WHERE a.k = b.k")
    advertised = [Advertisement(joined, "r1")]
    deployment = braid.plan(CHAIN, known, TWO_SIDES, planner=planner, sink="l0", advertised=advertised)
    assert [charge.what for charge in deployment.bill.charges if charge.amount] == ["deliver a ⋈ b ⋈ c"]
    assert any(isinstance(leaf, Reused) for leaf in leaves(deployment.tree))
    assert deployment.cost == pytest.approx(braid.plan(CHAIN, known, TWO_SIDES, sink="l0", advertised=advertised).cost)
