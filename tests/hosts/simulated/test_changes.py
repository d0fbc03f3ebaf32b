"""Plans that change between sites while they run give what the oracle gives, whatever goes wrong meanwhile."""

import random
from dataclasses import replace
from typing import Any

import pytest

import braid
from braid.hosts.simulated.simulation import Simulation
from braid.hosts.simulated.trace import told
from braid.language import parse
from braid.model.duration import duration_text
from braid.model.stream import Stream
from braid.planning.deployment import Deployment
from braid.planning.planners import PLANNERS
from braid.planning.solution.tree import TreeSolution
from braid.runtime.migration.change import Phase
from braid.testing import Case, assert_same_rows, oracle, random_case, without_late_rows
from braid.testing.network_cases import NetworkCase, over_a_network
from braid.testing.stream_files import random_rows
from tests.hosts.simulated.conftest import EAGER, LINE, SITES, TEXT, airport, random_faults, seeds


def plans(laid_out: NetworkCase, case: Case, count: int) -> list[Deployment]:
    """Some plans for the same query: each with figures of its own, or like the last one with a join elsewhere."""
    declared = {
        name: Stream(name, table.schema, case.time[name], case.lateness[name]) for name, table in case.streams.items()
    }
    query = parse(case.text, declared)
    chance = random.Random(laid_out.seed)
    made: list[Deployment] = []
    for number in range(count):
        last = made[-1].solution if made else None
        if isinstance(last, TreeSolution) and last.placement and chance.random() < 0.6:
            join, site = chance.choice(list(last.placement)), chance.choice(laid_out.topology.names)
            made.append(Deployment(made[-1].planner, replace(last, placement={**last.placement, join: site})))
            continue
        known = replace(laid_out, seed=laid_out.seed + number).statistics(query)
        planner = chance.choice(sorted(PLANNERS))
        plan = braid.plan(query, known, laid_out.topology, sink=laid_out.sink, planner=planner)
        made.append(scattered(plan, chance) if chance.random() < 0.5 else plan)
    return made


def scattered(plan: Deployment, chance: random.Random) -> Deployment:
    """The same join tree, with each join anywhere. Most planners would put all joins of a small query at one site."""
    solution = plan.solution
    if not isinstance(solution, TreeSolution):
        return plan
    names = solution.problem.topology.names
    return Deployment(
        plan.planner, replace(solution, placement={join: chance.choice(names) for join in solution.placement})
    )


def simulate(case: Case, seed: int) -> Simulation:
    chance = random.Random(seed)
    laid_out = over_a_network(case, seed)
    first, *others = plans(laid_out, case, chance.randint(2, 4))
    spans = [table.column(case.time[name]).drop_null().to_pylist() for name, table in case.streams.items()]
    moments = [moment for times in spans for moment in times]
    seconds = (max(moments) - min(moments)).total_seconds() if moments else 0.0
    return braid.simulate(
        case.text,
        case.streams,
        laid_out.topology,
        sites=laid_out.sites,
        sink=laid_out.sink,
        plan=first,
        changes=[(chance.uniform(0, 0.7 * seconds), plan) for plan in others],
        controller=chance.choice(["central", "distributed"]),
        adapt=chance.choice([False, False, False, False, EAGER]),
        faults=random_faults(seed),
        time=case.time,
        lateness={name: duration_text(length) for name, length in case.lateness.items()},
        batch_rows=case.batch_rows,
        seed=seed,
        shards=1 + seed % 3,
    )


def check(seed: int) -> Simulation:
    case = random_case(seed)
    rows = case.batch_rows or max(1, *(table.num_rows for table in case.streams.values()))
    case = replace(case, batch_rows=rows)
    simulation = simulate(case, seed)
    expected = oracle(case.text, without_late_rows(case), time=case.time)
    assert_same_rows(simulation.results, expected, message=f"{case!r}\n{told(simulation.timeline)}")
    assert all(change.phase in (Phase.DONE, Phase.ABORTED) for change in simulation.changes)
    return simulation


@pytest.mark.parametrize("part", range(10))
def test_changing_plans_give_what_the_oracle_gives(part: int) -> None:
    done = 0
    for seed in seeds(30, first=1_000 * part):
        done += sum(change.phase is Phase.DONE for change in check(seed).changes)
    assert done > 10


@pytest.mark.sweep
@pytest.mark.parametrize("part", range(100))
def test_sweep_of_changing_plans(part: int) -> None:
    for seed in seeds(100, first=100_000 + 1_000 * part):
        check(seed)


STREAMS = airport()


def moved(controller: str = "central", **more: Any) -> Simulation:
    """A join that is at the sink first, and moves to where one of its streams starts."""
    changes = [(3.0, "exact")]
    options = {"planner": "at_sink", "changes": changes, "controller": controller, **more}
    return braid.simulate(TEXT, STREAMS, LINE, sites=SITES, sink="lyon", **options)


@pytest.mark.parametrize("controller", ["central", "distributed"])
def test_a_change_goes_through_its_phases_in_order(controller: str) -> None:
    simulation = moved(controller)
    assert_same_rows(simulation.results, oracle(TEXT, STREAMS))
    (change,) = simulation.changes
    phases = [Phase.PREPARING, Phase.READY, Phase.PROMISING, Phase.SWITCHING, Phase.DONE]
    assert list(change.phases) == phases
    assert list(change.phases.values()) == sorted(change.phases.values())
    assert change.moment is not None
    assert simulation.messages["ready"] > 0


def test_results_keep_coming_while_a_plan_changes() -> None:
    """No result waits for the change: the slowest of them is about as late as without it."""
    plain = braid.simulate(TEXT, STREAMS, LINE, sites=SITES, sink="lyon", planner="at_sink")
    assert max(moved().latencies) <= 1.5 * max(plain.latencies)


def test_the_coordinator_tells_everybody_or_everybody_tells_everybody() -> None:
    """Of three sites, the one that is ready tells two others itself, or the coordinator, which tells the two others."""
    central, distributed = moved("central").messages, moved("distributed").messages
    assert (central["promise"], distributed["promise"]) == (3, 2)
    assert central["verdict"] == distributed["verdict"] == 2


def test_what_cannot_be_simulated_is_said() -> None:
    with pytest.raises(braid.PlanError, match="there is no controller 'middle'"):
        moved("middle")
    with pytest.raises(braid.BraidError, match="there is no profile of faults called 'floods'"):
        moved(faults="floods")
    with pytest.raises(braid.BraidError, match="crash_rate is a chance from 0 to less than 1, not 2"):
        braid.Faults(crash_rate=2)
    counted = TEXT.replace("[RANGE 5 SECONDS]", "[ROWS 3]")
    with pytest.raises(braid.PlanError, match="the window of 'f' does not end by time alone"):
        braid.simulate(counted, STREAMS, LINE, sites=SITES, sink="lyon", planner="at_sink", changes=[(3, "at_sink")])


def test_results_that_the_new_plan_will_give_are_not_told_to_be_complete() -> None:
    """The old plan knows the moment of a change while the coordinator, cut off, and readers do not: it told them that
    all results up to its watermark were there. A GROUP BY would have taken those of the new plan for late."""
    text = "SELECT a.n AS an, b.n AS bn FROM a [NOW], b [RANGE 30 SECONDS] WHERE a.k = b.k"
    streams = {"a": random_rows(0, 60), "b": random_rows(1, 60)}
    simulation = braid.simulate(
        text,
        streams,
        braid.Topology.from_links([("paris", "lyon", 0.004), ("lyon", "nice", 0.006), ("paris", "nice", 0.009)]),
        sites={"a": "paris", "b": "lyon"},
        planner="exhaustive",
        changes=[(30.17532466681805, "simple"), (-5, "exact"), (0, "local"), (27.624972729835722, "bottom_up")],
        controller="distributed",
        faults=braid.Faults(outages=8, repeats=0.5, seconds=20),
        lateness="1 second",
        batch_rows=7,
        shards=3,
        seed=16,
    )
    assert_same_rows(simulation.results, oracle(text, streams))


@pytest.mark.parametrize("seed", range(3))
def test_what_comes_while_a_step_is_cut_off_is_not_forgotten(seed: int) -> None:
    """A site logs the inputs of a step, the broker restarts, and the step runs again: then there is more to take.

    Found by a sweep: the site slept until the next batch, and the last ones of a stream never came out."""
    simulation = moved(faults=braid.Faults(restarts=4, seconds=5.0), seed=seed)
    assert_same_rows(simulation.results, oracle(TEXT, STREAMS))
    assert any(event.what == "the broker is back" for event in simulation.timeline)


def test_what_an_agreed_moment_is_needs_no_order_of_messages() -> None:
    """All promises and answers may overtake each other: a change may be done for the coordinator at once."""
    for seed in range(3):
        simulation = moved("distributed", faults=braid.Faults(delays=0.9, repeats=0.5, seconds=3.0), seed=seed)
        assert_same_rows(simulation.results, oracle(TEXT, STREAMS))
        (change,) = simulation.changes
        assert change.phase is Phase.DONE
