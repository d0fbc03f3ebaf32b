"""Joins that go to other sites: what cannot be moved is said."""

import pytest

import braid
from braid.model.network.sites import Site
from braid.model.program import Join
from braid.planning.deployment import Deployment
from braid.planning.relocation import drained, moved
from braid.planning.solution.partitioned import PartitionedSolution
from braid.testing.always_dividing import AlwaysDividing

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
    with pytest.raises(braid.PlanError, match="the join to move must be a string, not 1"):
        moved(planned(), 1, "nice")  # type: ignore[arg-type]
    with pytest.raises(braid.TopologyError, match="the name of a site must be a string, not None"):
        moved(planned(), "a ⋈ b", None)  # type: ignore[arg-type]
    with pytest.raises(braid.TopologyError, match="has no site 'rome'"):
        drained(planned(), "rome")
    with pytest.raises(braid.PlanError, match="only joins of a tree can be moved one by one"):
        moved(planned("greedy"), "a ⋈ b", "nice")


def divided() -> Deployment:
    """Each stream has a key of its own, so that each key is joined where most rows are; the result is joined with c."""
    text = f"{TEXT.replace('WHERE', ', c [RANGE 9 SECONDS] WHERE')} AND b.l < c.l"
    known = braid.Statistics(
        rates={"a": 10, "b": 10, "c": 40},
        selectivities={"a.k = b.k": 0.001, "b.l < c.l": 0.01},
        sites={"a": "paris", "b": "lyon", "c": "nice"},
        histograms={"a.k": {1: 9.9, 2: 0.1}, "b.k": {1: 0.1, 2: 9.9}},
    )
    return braid.plan(text, known, NETWORK, planner=AlwaysDividing(2), sink="nice")


def test_a_plan_with_parts_moves_part_by_part() -> None:
    plan = divided()
    assert isinstance(plan.solution, PartitionedSolution)
    first, _ = sites = [part.site for part in plan.solution.joins[0].parts]
    assert sorted(sites) == ["lyon", "paris"]
    after = moved(plan, "part 1 of a ⋈ b", "nice").solution
    assert isinstance(after, PartitionedSolution)
    assert [part.site for part in after.joins[0].parts] == [first, "nice"]
    assert after.bill.total != pytest.approx(plan.cost)
    assert "a ⋈ b ⋈ c at paris" in moved(plan, "a ⋈ b ⋈ c", "paris").explain()
    with pytest.raises(braid.PlanError, match="the plan has no join 'part 2 of a ⋈ b'; did you mean 'part"):
        moved(plan, "part 2 of a ⋈ b", "nice")


def test_no_part_is_left_at_a_site_that_is_drained() -> None:
    plan = divided()
    assert {join.stream for join in plan.programs["lyon"].all_of(Join)}
    for site in ("lyon", "paris", "nice"):
        assert not any(drained(plan, site).programs[site].all_of(Join))


def test_the_last_site_cannot_be_drained() -> None:
    alone = braid.Topology((Site("paris"),), ())
    here = braid.Statistics(rates=KNOWN.rates, selectivities=KNOWN.selectivities, sites={"a": "paris", "b": "paris"})
    plan = braid.plan(TEXT, here, alone, sink="paris")
    with pytest.raises(braid.PlanError, match="'paris' is the only site of the network"):
        drained(plan, "paris")
