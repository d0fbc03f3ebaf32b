"""Deployments in virtual time give what the oracle gives, whatever the network, the planner and the arrival order."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import braid
from braid.hosts.simulated.simulation import Simulation
from braid.language import parse
from braid.model.statistics import Statistics
from braid.model.stream import Stream
from braid.model.window import Rows
from braid.planning.planners import PLANNERS
from braid.testing import Case, assert_same_rows, oracle, random_case, without_late_rows
from braid.testing.interpreting import check_programs, is_interpretable
from braid.testing.network_cases import over_a_network
from braid.testing.networks import NINE_SITES
from braid.testing.three_streams import expected_results, three_tables
from tests.hosts.simulated.conftest import EAGER, LINE, SITES, TEXT, airport, seeds, table


def simulate(case: Case, seed: int, crash_rate: float = 0.0) -> Simulation:
    laid_out = over_a_network(case, seed)
    faults = braid.Faults(crash_rate=crash_rate)
    simulation: Simulation = braid.simulate(
        case.text, case.streams, laid_out.topology, faults=faults, **laid_out.options()
    )
    return simulation


def check(seed: int) -> None:
    case = random_case(seed)
    rows = case.batch_rows or max(1, *(table.num_rows for table in case.streams.values()))
    case = replace(case, batch_rows=rows)
    expected = oracle(case.text, without_late_rows(case), time=case.time)
    # In every third simulation sites die, at any point of their steps, and come back.
    crash_rate = 0.05 if seed % 3 == 0 else 0.0
    simulation = simulate(case, seed, crash_rate)
    assert_same_rows(simulation.results, expected, message=repr(case))
    if is_interpretable(simulation.deployment.query):
        check_programs(simulation.deployment, without_late_rows(case), case.time, expected)


@pytest.mark.parametrize("part", range(10))
def test_deployments_give_what_the_oracle_gives(part: int) -> None:
    for seed in seeds(30, first=1_000 * part):
        check(seed)


@pytest.mark.parametrize("part", range(3))
def test_the_programs_of_deployments_yield_by_definition_what_the_oracle_gives(part: int) -> None:
    """Where the interpreter knows what the query means: about one case in thirteen. Nothing runs here."""
    interpreted = 0
    for seed in seeds(100, first=2_000_000 + 1_000 * part):
        case = random_case(seed)
        laid_out = over_a_network(case, seed)
        declared = {
            name: Stream(name, table.schema, case.time[name], case.lateness[name])
            for name, table in case.streams.items()
        }
        query = parse(case.text, declared)
        if is_interpretable(query):
            known = laid_out.statistics(query)
            deployment = braid.plan(query, known, laid_out.topology, planner=laid_out.planner, sink=laid_out.sink)
            in_time = without_late_rows(case)
            check_programs(deployment, in_time, case.time, oracle(case.text, in_time, time=case.time))
            interpreted += 1
    assert interpreted > 0


@pytest.mark.sweep
@pytest.mark.parametrize("part", range(200))
def test_sweep_of_deployments(part: int) -> None:
    for seed in seeds(100, first=100_000 + 1_000 * part):
        check(seed)


@pytest.mark.parametrize("planner", sorted(PLANNERS))
def test_every_planner_has_deployments_that_run(planner: str) -> None:
    streams = airport()
    simulation = braid.simulate(TEXT, streams, LINE, sites=SITES, sink="lyon", planner=planner)
    assert_same_rows(simulation.results, oracle(TEXT, streams))
    assert simulation.results.num_rows > 0


def test_what_crosses_links_is_counted_and_results_take_time() -> None:
    simulation = braid.simulate(TEXT, airport(), LINE, sites=SITES, sink="lyon")
    assert set(simulation.links) == {"paris - lyon", "lyon - nice"}
    assert all(traffic.bytes > 0 and traffic.rows >= 100 for traffic in simulation.links.values())
    assert set(simulation.measured) == set(simulation.links)
    assert simulation.bill.total > 0
    assert simulation.latency is not None
    assert simulation.latency > 0.004
    assert any("ships" in event.what for event in simulation.timeline)
    assert [event.time for event in simulation.timeline] == sorted(event.time for event in simulation.timeline)


def test_a_stream_that_is_silent_while_another_one_goes_on_is_told_once() -> None:
    streams = airport(600)
    silent = streams | {"bags": pa.concat_tables([streams["bags"].slice(0, 100), streams["bags"].slice(500)])}
    events = {
        name: [event for event in simulation.timeline if "brings no rows" in event.what]
        for name, simulation in {
            "both": braid.simulate(TEXT, streams, LINE, sites=SITES, sink="lyon", batch_rows=10),
            "one": braid.simulate(TEXT, silent, LINE, sites=SITES, sink="lyon", batch_rows=10),
        }.items()
    }
    assert events["both"] == []
    (event,) = events["one"]
    assert 40 <= event.time <= 45, "30 seconds after its last rows"
    assert event.site == "nice"
    assert event.what.startswith("stream 'bags' brings no rows at site 'nice' while other streams")
    assert "idle_timeout" in event.what


def test_the_same_seed_gives_the_same_simulation() -> None:
    first, second = (braid.simulate(TEXT, airport(), LINE, sites=SITES, sink="lyon", seed=3) for _ in range(2))
    assert first.timeline == second.timeline
    assert first.results == second.results


def test_a_slow_link_makes_results_late() -> None:
    links = [
        braid.Topology.from_links([("paris", "nice", {"latency": 0.001, "bandwidth": speed})]) for speed in (1e6, 2e3)
    ]
    fast, slow = (braid.simulate(TEXT, airport(), topology, sites=SITES, sink="paris") for topology in links)
    assert_same_rows(fast.results, slow.results)
    assert fast.latency is not None
    assert slow.latency is not None
    assert slow.latency > fast.latency + 0.1


ROWS = "SELECT f.gate, b.tag FROM flights [ROWS 5] f, bags [RANGE 3 SECONDS] b WHERE f.num = b.flight"


def test_a_window_that_counts_rows_stays_at_one_site() -> None:
    streams = airport()
    simulation = braid.simulate(ROWS, streams, LINE, sites=SITES, sink=None)
    assert_same_rows(simulation.results, oracle(ROWS, streams))
    three = f"{ROWS} AND b.tag = s.tag".replace("bags [", "scans [RANGE 1 SECOND] s, bags [")
    streams["scans"] = table(100, tag=list(range(100)))
    with pytest.raises(braid.PlanError, match="the window of 'f' counts rows"):
        braid.simulate(three, streams, LINE, sites={**SITES, "scans": "lyon"}, planner="greedy", sink="lyon")
    assert Rows(5).lifetime is None


@pytest.mark.parametrize("controller", ["central", "distributed"])
def test_a_query_with_a_window_that_counts_rows_keeps_its_plan_while_others_adapt(controller: str) -> None:
    streams, texts = airport(), {"counted": ROWS, "timed": TEXT}
    simulations = braid.simulate(texts, streams, LINE, sites=SITES, sink="lyon", adapt=EAGER, controller=controller)
    for name, text in texts.items():
        assert_same_rows(simulations[name].results, oracle(text, streams))
    assert simulations["counted"].changes == ()


def test_groups_are_made_of_what_arrives_at_the_sink() -> None:
    text = """SELECT f.gate, count(*) AS bags FROM flights [RANGE 5 SECONDS] f, bags [RANGE 3 SECONDS] b
              WHERE f.num = b.flight GROUP BY f.gate"""
    streams = airport()
    simulation = braid.simulate(text, streams, LINE, sites=SITES, sink="lyon")
    assert_same_rows(simulation.results, oracle(text, streams))


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"sites": {"flights": "paris"}}, braid.StreamError, "no site is given for stream 'bags'"),
        ({"sites": {"flights": "paris", "bags": "rome"}}, braid.TopologyError, "has no site 'rome'"),
        ({"sink": "rome"}, braid.TopologyError, "has no site 'rome'"),
        ({"planner": "exactly"}, braid.PlanningError, "there is no planner 'exactly'"),
    ],
)
def test_wrong_arguments_are_refused(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        braid.simulate(TEXT, airport(), LINE, **({"sites": SITES, "sink": "lyon"} | changes))


def test_a_plan_for_another_query_is_refused() -> None:
    other = braid.simulate(TEXT, airport(), LINE, sites=SITES).deployment
    text = TEXT.replace("5 SECONDS", "6 SECONDS")
    with pytest.raises(braid.PlanError, match="the plan is for another query"):
        braid.simulate(text, airport(), LINE, sites=SITES, plan=other)


def test_sites_that_die_lose_nothing_and_repeat_nothing() -> None:
    streams = airport()
    for seed in range(5):
        simulation = braid.simulate(
            TEXT, streams, LINE, sites=SITES, sink="lyon", seed=seed, faults=braid.Faults(crash_rate=0.1)
        )
        assert any(event.what.startswith("dies") for event in simulation.timeline)
        assert_same_rows(simulation.results, oracle(TEXT, streams))


PARTS = """SELECT a.id AS a_id, b.id AS b_id, c.id AS c_id
           FROM a [RANGE 8 SECONDS], b [RANGE 3 SECONDS], c [UNBOUNDED] WHERE a.k = b.k AND b.j = c.j"""


@pytest.mark.parametrize("planner", sorted(PLANNERS))
def test_plans_of_every_shape_survive_crashes(planner: str) -> None:
    """By its histograms, pmjoin gives each part of the keys a plan of its own, with channels of its own."""
    known = Statistics(
        rates={"a": 10, "b": 12, "c": 9},
        lengths={"c": 12},
        selectivities={"a.k = b.k": 0.3, "b.j = c.j": 0.25},
        histograms={"a.k": {0: 6.0, 1: 3.0, 2: 1.0}, "b.k": {0: 1.0, 1: 5.0, 2: 6.0}},
    )
    for seed in range(3):
        simulation = braid.simulate(
            PARTS,
            three_tables(seed),
            NINE_SITES,
            sites={"a": f"n{seed}", "b": "n5", "c": "n8"},
            sink="n4",
            planner=planner,
            statistics=known,
            lateness="12 seconds",
            batch_rows=2,
            seed=seed,
            faults="crashes",
            shards=1 + seed,
        )
        rows = sorted(tuple(row.values()) for row in simulation.results.to_pylist())
        assert rows == expected_results(PARTS, seed)


def test_simulations_measure_what_they_are_not_told() -> None:
    """Statistics come from the data; what nothing was measured for is taken to match always."""
    streams = airport()
    simulation = braid.simulate(TEXT, streams, LINE, sites=SITES, sink="lyon")
    billed = {charge.what: charge.volume for charge in simulation.bill.charges if charge.volume}
    assert billed
    empty = {name: table.slice(0, 0) for name, table in streams.items()}
    assert braid.simulate(TEXT, empty, LINE, sites=SITES, sink="lyon").results.num_rows == 0
