"""Joins that go to other sites: what cannot be moved is said."""

import random
from dataclasses import replace
from itertools import product

import pytest

import braid
from braid.model.network.generators import random_geometric
from braid.model.network.sites import Site
from braid.model.program import Join
from braid.planning.deployment import Deployment
from braid.planning.relocation import drained, moved
from braid.planning.solution.partitioned import PartitionedSolution
from braid.planning.solution.sequenced import SequencedSolution
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
    with pytest.raises(braid.PlanError, match="the plan has no step 'a ⋈ b'; known: a probes b, b probes a"):
        moved(planned("greedy"), "a ⋈ b", "nice")
    with pytest.raises(braid.PlanError, match="starts: at 'paris' or 'lyon', not at 'nice'"):
        moved(planned("greedy"), "a probes b", "nice")


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


def sequences(seed: int) -> Deployment:
    """The sequences of five streams at the sites of a random network."""
    network = random_geometric(6, seed=seed)
    sites = dict(zip("abcde", network.names, strict=False))
    text = "SELECT * FROM {} WHERE {}".format(
        ", ".join(f"{name} [RANGE 9 SECONDS]" for name in "abcde"),
        " AND ".join(f"a.k = {name}.k" for name in "bcde"),
    )
    chance = random.Random(seed)
    shares = {f"a.k = {name}.k": 10 ** chance.uniform(-3, -1) for name in "bcde"}
    rates = {name: 10 ** chance.uniform(0, 2) for name in "abcde"}
    return braid.plan(text, braid.Statistics(rates, selectivities=shares, sites=sites), network, planner="greedy")


def test_a_step_of_a_probe_sequence_moves() -> None:
    plan = planned("greedy")
    other = {"paris": "lyon", "lyon": "paris"}
    for step, site in plan.placement.items():
        after = moved(plan, str(step), other[site])
        assert after.placement == {**plan.placement, step: other[site]}
        assert moved(after, str(step), site).placement == plan.placement


@pytest.mark.parametrize("seed", range(8))
def test_the_steps_behind_one_that_moves_stay_if_they_can(seed: int) -> None:
    plan = sequences(seed)
    assert isinstance(plan.solution, SequencedSolution)
    origins = {name: plan.solution.problem.topology.names[site] for name, site in zip("abcde", range(5), strict=True)}
    for step, (before, _) in plan.solution.steps.items():
        for site in {origins[step.stream], plan.solution.problem.topology.names[before.site]}:
            after = moved(plan, str(step), site).placement
            assert after[step] == site
            changed = {one for one in after if after[one] != plan.placement[one]}
            assert all(one.head == step.head and len(one.bound) >= len(step.bound) for one in changed)
            assert all(plan.placement[one] != origins[one.stream] for one in changed - {step})


@pytest.mark.parametrize("seed", range(8))
def test_no_step_is_left_at_a_site_that_is_drained(seed: int) -> None:
    """Of all sequences in the same order without the site, the drained ones are the cheapest."""
    plan = sequences(seed)
    for site in set(plan.placement.values()):
        after = drained(plan, site).solution
        assert isinstance(after, SequencedSolution)
        assert site not in after.placement.values()
        assert not any(drained(plan, site).programs[site].all_of(Join))
        for number, head in enumerate(after.heads):
            costs = []
            for placements in product((0, 1), repeat=4):
                heads = (*after.heads[:number], replace(head, placements=placements), *after.heads[number + 1 :])
                other = replace(after, heads=heads)
                if site not in other.placement.values():
                    costs.append(other.bill.total)
            if site in {place for step, place in plan.placement.items() if step.head == "abcde"[number]}:
                assert after.bill.total == pytest.approx(min(costs))


def test_streams_that_start_together_are_joined_there_by_a_probe_sequence() -> None:
    here = replace(KNOWN, sites={"a": "paris", "b": "paris"})
    plan = braid.plan(TEXT, here, NETWORK, planner="greedy", sink="lyon")
    with pytest.raises(braid.PlanError, match="the step 'a probes b' can only run at 'paris'"):
        drained(plan, "paris")
