"""Plans that change between sites by themselves: results stay right, and what crosses the links costs less."""

import random
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

import braid
from braid.hosts.simulated.simulation import Simulation
from braid.model.network.sites import Link
from braid.testing import assert_same_rows, oracle, random_case, without_late_rows
from braid.testing.network_cases import over_a_network
from tests.hosts.simulated.conftest import EAGER, random_faults, seeds


def check(seed: int) -> int:
    """How often the plan of a random case has changed by itself, if its results are those of the oracle."""
    chance = random.Random(seed)
    case = random_case(seed)
    rows = case.batch_rows or max(1, *(table.num_rows // 10 for table in case.streams.values()))
    laid_out = over_a_network(replace(case, batch_rows=rows), seed)
    options = laid_out.options()
    controller = chance.choice(["central", "distributed"])
    if controller == "distributed":
        options["planner"] = "greedy"
    simulation = braid.simulate(
        case.text,
        case.streams,
        laid_out.topology,
        controller=controller,
        adapt=EAGER,
        faults=random_faults(seed),
        **options,
    )
    expected = oracle(case.text, without_late_rows(replace(case, batch_rows=rows)), time=case.time)
    assert_same_rows(simulation.results, expected, message=repr(case))
    return len(simulation.changes)


@pytest.mark.parametrize("part", range(2))
def test_adapting_plans_give_what_the_oracle_gives(part: int) -> None:
    changed = sum(check(seed) for seed in seeds(30, first=1_000 * part))
    assert changed > 3


@pytest.mark.sweep
@pytest.mark.parametrize("part", range(50))
def test_sweep_of_adapting_plans(part: int) -> None:
    for seed in seeds(100, first=200_000 + 1_000 * part):
        check(seed)


TEXT = """
    SELECT a.k, b.l AS bl, c.l AS cl
    FROM a [RANGE 4 SECONDS], b [RANGE 4 SECONDS], c [RANGE 4 SECONDS]
    WHERE a.k = b.k AND b.l = c.l
"""
SITES = {"a": "paris", "b": "lyon", "c": "nice"}
NETWORK = braid.Topology.from_links([("paris", "lyon", 0.02), ("lyon", "nice", 0.03), ("paris", "nice", 0.04)])


def stream(seed: int, seconds: float, before: float, after: float) -> pa.Table:
    """Rows at one rate, and at another from the middle on."""
    chance, moment, rows = random.Random(seed), 0.0, []
    while moment < seconds:
        moment += chance.expovariate(before if moment < seconds / 2 else after)
        rows.append(
            (datetime(2024, 1, 1) + timedelta(seconds=moment), chance.randrange(2_000), chance.randrange(2_000))
        )
    times, keys, others = zip(*rows, strict=True)
    return pa.table({"ts": pa.array(times, pa.timestamp("us")), "k": keys, "l": others})


STREAMS = {"a": stream(1, 60, 20, 200), "b": stream(2, 60, 100, 100), "c": stream(3, 60, 200, 20)}
EXPECTED = oracle(TEXT, STREAMS)


def simulate(**options: Any) -> Simulation:
    simulation = braid.simulate(TEXT, STREAMS, NETWORK, sites=SITES, sink="lyon", batch_rows=100, **options)
    assert_same_rows(simulation.results, EXPECTED)
    return simulation


def cost(simulation: Simulation, network: braid.Topology = NETWORK) -> float:
    """The bytes in transit, over the whole time."""
    return sum(simulation.traffic(str(link)).bytes * (link.latency or 0.0) for link in network.links)


def test_a_plan_that_nothing_was_known_for_moves_when_something_is() -> None:
    """All streams go to Paris first, also the many rows of Lyon, most of which have no match in Nice."""
    streams = {"a": stream(1, 40, 20, 20), "b": stream(2, 40, 200, 200), "c": stream(3, 40, 20, 20)}
    unknown = braid.Statistics(rates=dict.fromkeys("abc", 1.0), selectivities={"a.k = b.k": 1.0, "b.l = c.l": 1.0})
    options: dict[str, Any] = {"sites": SITES, "sink": "paris", "planner": "at_sink", "statistics": unknown}
    fixed = braid.simulate(TEXT, streams, NETWORK, batch_rows=100, **options)
    adapted = braid.simulate(TEXT, streams, NETWORK, batch_rows=100, adapt=True, **options)
    assert_same_rows(adapted.results, oracle(TEXT, streams))
    assert "b ⋈ c at lyon" in adapted.changes[0].plan.explain()
    assert cost(adapted) < 0.85 * cost(fixed)


@pytest.mark.parametrize("controller", ["central", "distributed"])
def test_sequences_follow_rates_that_change(controller: str) -> None:
    early = braid.Statistics(
        rates={"a": 20, "b": 100, "c": 200}, selectivities={"a.k = b.k": 0.0005, "b.l = c.l": 0.0005}
    )
    fixed = simulate(planner="greedy", statistics=early)
    adapted = simulate(planner="greedy", statistics=early, adapt=True, controller=controller)
    assert adapted.changes
    assert all(change.predicted is not None and change.predicted > 0.2 for change in adapted.changes)
    assert cost(adapted) < cost(fixed)


def test_a_link_that_becomes_dear_is_a_reason_to_change() -> None:
    """The few rows of Paris go to Lyon, until it costs fifty times as much; then the many of Lyon go to Paris."""

    def network(latency: float) -> braid.Topology:
        there, back = Link("paris", "lyon", latency, one_way=True), Link("lyon", "paris", 0.02, one_way=True)
        return braid.Topology.from_links([there, back])

    text = "SELECT a.k FROM a [RANGE 4 SECONDS], b [RANGE 4 SECONDS] WHERE a.k = b.k"
    streams = {"a": stream(1, 40, 20, 20), "b": stream(2, 40, 100, 100)}
    changes = [(15.0, network(1.0))]
    adapted = braid.simulate(
        text, streams, network(0.02), sites=SITES, changes=changes, adapt=True, controller="central", batch_rows=20
    )
    assert_same_rows(adapted.results, oracle(text, streams))
    (change,) = adapted.changes
    assert 15 <= change.asked < 17
    assert "a ⋈ b at paris" in change.plan.explain()


def test_nobody_decides_without_a_controller() -> None:
    assert not simulate(planner="at_sink", adapt=True, controller=None).changes


def test_a_network_that_replaces_another_has_the_same_links() -> None:
    with pytest.raises(braid.TopologyError, match="must have the same sites and links"):
        simulate(changes=[(3.0, braid.Topology.from_links([("paris", "lyon", 0.02)]))])


ONE_KEY = """
    SELECT a.n AS an, b.n AS bn, c.n AS cn FROM a [RANGE 2 SECONDS], b [RANGE 2 SECONDS], c [RANGE 2 SECONDS]
    WHERE a.k = b.k AND b.k = c.k
"""
FULL_MESH = braid.Topology.from_links([("paris", "lyon", 0.02), ("lyon", "nice", 0.02), ("paris", "nice", 0.02)])


def hot_keys(seed: int, first: str, then: str) -> pa.Table:
    """Most rows have one key, and another one from the middle on."""
    chance, rows = random.Random(seed), []
    for number in range(3_200):
        moment = number / 100
        hot = first if moment < 14 else then
        key = hot if chance.random() < 0.85 else f"key {chance.randrange(300)}"
        rows.append((datetime(2024, 1, 1) + timedelta(seconds=moment), key, f"{chance.random()} {chance.random()}"))
    times, keys, others = zip(*rows, strict=True)
    return pa.table({"ts": pa.array(times, pa.timestamp("us")), "k": keys, "n": others})


def test_parts_follow_the_keys() -> None:
    """Each site has a key of its own that most rows have. A plan for each of them moves few rows; then keys move."""
    streams = {"a": hot_keys(1, "x", "y"), "b": hot_keys(2, "y", "z"), "c": hot_keys(3, "z", "x")}
    unknown = braid.Statistics(rates=dict.fromkeys("abc", 1.0), selectivities={"a.k = b.k": 1.0, "b.k = c.k": 1.0})
    expected, costs = oracle(ONE_KEY, streams), {}
    for planner in ("exact", "pmjoin"):
        options: dict[str, Any] = {"sites": SITES, "planner": planner, "statistics": unknown, "batch_rows": 100}
        simulation = braid.simulate(ONE_KEY, streams, FULL_MESH, adapt=True, **options)
        assert_same_rows(simulation.results, expected)
        costs[planner] = cost(simulation, FULL_MESH)
    assert costs["pmjoin"] < 0.75 * costs["exact"]
    layouts = [change.plan.solution.layout for change in simulation.changes]
    assert len(layouts) > 1
    assert all(" parts of a.k = b.k = c.k" in layout for layout in layouts)
