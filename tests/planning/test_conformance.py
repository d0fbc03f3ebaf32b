"""What every planner must do: return a valid plan, always the same one, before the deadline, and count alternatives."""

from collections.abc import Callable
from typing import Any

import pytest

import braid
from braid.errors import DeadlineError, PlanningError
from braid.model.network.generators import cloud_regions, random_geometric
from braid.model.network.sites import Link
from braid.model.network.topology import SITES_AT_A_TIME, Topology
from braid.model.program import Emit, Join, Ship, SiteProgram, reads
from braid.model.statistics import Statistics
from braid.planning.cost.models import MODELS
from braid.planning.deadline import Deadline
from braid.planning.deployment import Deployment
from braid.planning.planners import PLANNERS, solve
from braid.planning.problem import Problem
from braid.workloads.synthetic import synthetic
from braid.workloads.workload import Workload

planners = pytest.mark.parametrize("planner", sorted(PLANNERS))


def network() -> Topology:
    return Topology.from_links(
        [
            Link("a", "b", 1.0, 1e6, 1.0, 0.01),
            Link("b", "c", 2.0, 1e6, 2.0, 0.02),
            Link("c", "d", 0.5, 2e6, 0.5, 0.02),
            Link("d", "a", 1.5, 2e6, 1.5, 0.05),
            Link("d", "e", 3.0, 5e5, 3.0, 0.01),
        ]
    )


def workload(queries: int = 6, streams: int = 4) -> Workload:
    generated = synthetic(network(), streams=5, queries=queries, joins=(streams - 2, streams - 1), seed=7)
    sizes = {f"s{number}": 20.0 + number for number in range(5)}
    statistics = Statistics(
        rates=generated.statistics.rates,
        sizes=sizes,
        selectivities=generated.statistics.selectivities,
        sites=generated.statistics.sites,
    )
    return Workload(generated.requests, statistics, generated.topology)


def check(deployment: Deployment) -> None:
    """Check that sequences, placement, bill, programs and explanation of a deployment are consistent."""
    problem = deployment.solution.problem
    aliases = set(deployment.query.aliases)
    for head, sequence in deployment.plan.sequences.items():
        assert {head, *sequence} == aliases
    assert set(deployment.placement.values()) <= set(problem.topology.names)
    assert deployment.cost == pytest.approx(sum(charge.amount for charge in deployment.bill.charges))
    assert all(charge.amount >= 0 for charge in deployment.bill.charges)
    check_programs(deployment.programs, None if problem.sink is None else problem.topology.names[problem.sink])
    assert deployment.planner in deployment.explain()


def check_programs(programs: dict[str, SiteProgram], sink: str | None) -> None:
    """Check that the target of each shipped stream reads it, and that results are emitted, at the sink if any."""
    for site, program in programs.items():
        for instruction in program.instructions:
            if isinstance(instruction, Ship):
                assert instruction.site != site
                reader = programs[instruction.site]
                assert instruction.stream in {*reader.arriving, *reader.query.aliases}
                assert any(instruction.stream in reads(step) for step in reader.instructions)
    emitting = {site for site, program in programs.items() if any(isinstance(i, Emit) for i in program.instructions)}
    assert emitting
    assert sink is None or emitting == {sink}


@planners
@pytest.mark.parametrize("cost", sorted(MODELS))
@pytest.mark.parametrize("delivered", [True, False])
def test_plans_are_valid(planner: str, cost: str, delivered: bool) -> None:
    requested = workload(3)
    for request in requested.requests:
        sink = request.sink if delivered else None
        check(
            braid.plan(request.query, requested.statistics, requested.topology, planner=planner, cost=cost, sink=sink)
        )


@planners
def test_plans_are_valid_with_derived_streams(planner: str) -> None:
    for deployment in workload().solve(planner):
        check(deployment)


@planners
def test_reusing_derived_streams_never_costs_more_than_the_first_plan(planner: str) -> None:
    requested = workload(1)
    again = Workload(requested.requests * 2, requested.statistics, requested.topology)
    first, second = again.solve(planner)
    assert second.cost <= first.cost


@planners
def test_the_same_problem_gives_the_same_plan(planner: str) -> None:
    first, second = (list(workload().solve(planner)) for _ in range(2))
    assert [deployment.explain() for deployment in first] == [deployment.explain() for deployment in second]


@planners
def test_no_planner_is_better_than_exact(planner: str) -> None:
    requested = workload(4)
    for cost in ("network_usage", "communication"):
        best = requested.solve("exact", cost, reuse=False)
        for optimum, deployment in zip(best, requested.solve(planner, cost, reuse=False), strict=True):
            assert deployment.cost >= optimum.cost * (1 - 1e-9)


@planners
def test_plans_considered_are_counted(planner: str) -> None:
    for deployment in workload().solve(planner):
        assert deployment.considered >= 1


class Ticks:
    """A clock that advances by one second at each reading, so it counts how often a planner checks its deadline."""

    def __init__(self) -> None:
        self.readings = 0

    def __call__(self) -> float:
        self.readings += 1
        return float(self.readings)


def plan_within(planner: str, ticks: int, clock: Ticks) -> Deployment:
    """Plan the first query of the workload, on a new topology that has nothing cached."""
    requested = workload(1)
    (request,) = requested.requests
    deadline = Deadline.of(planner, ticks, clock)
    model = MODELS["network_usage"]
    return solve(
        Problem.of(request.query, requested.statistics, requested.topology, model, request.sink, deadline=deadline),
        planner,
    )


@planners
def test_the_deadline_is_respected(planner: str) -> None:
    whole = Ticks()
    plan_within(planner, 1_000_000, whole)
    checks = whole.readings - 1
    # When the time runs out, the next check raises the error: tried for the first and last check, and some between.
    for allowed in {*range(0, checks, max(1, checks // 20)), checks - 1}:
        clock = Ticks()
        with pytest.raises(DeadlineError, match=f"'{planner}' did not finish within {allowed} s; give it more time"):
            plan_within(planner, allowed, clock)
        assert clock.readings == 1 + allowed + 1
    plan_within(planner, checks, Ticks())


@pytest.mark.parametrize(
    ("planner", "subject", "least"),
    [
        ("exact", "distances", 200 / SITES_AT_A_TIME),
        ("top_down", "hierarchy", 200 / 32),
        ("bottom_up", "hierarchy", 200 / 32),
        ("npc", "hierarchy", 200 / 32),
        ("in_network", "zones", 5),
        ("relaxation", "cost space", 4_000),
    ],
)
def test_preparing_a_network_checks_the_deadline_at_every_step(
    planner: str, subject: str, least: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a new network, planners first compute distances or clusters; on a large one, the deadline may pass there."""
    clock, checks = Ticks(), {}
    remember = Topology.remember

    def counting(self: Topology, key: Any, make: Callable[[], Any]) -> Any:
        before = clock.readings
        value = remember(self, key, make)
        checks[key[0]] = max(checks.get(key[0], 0), clock.readings - before)
        return value

    monkeypatch.setattr(Topology, "remember", counting)
    requested = synthetic(random_geometric(200), streams=4, queries=1, joins=(3, 3), seed=7)
    (request,) = requested.requests
    deadline = Deadline.of(planner, 1_000_000, clock)
    model = MODELS["network_usage"]
    problem = Problem.of(
        request.query, requested.statistics, requested.topology, model, request.sink, deadline=deadline
    )
    solve(problem, planner)
    assert checks[subject] >= least


@planners
def test_two_streams_at_one_site_stay_there(planner: str) -> None:
    statistics = Statistics(
        rates={"x": 5, "y": 7}, selectivities={"x.k = y.k": 0.01}, sites={"x": "us-east-1", "y": "us-east-1"}
    )
    text = "SELECT * FROM x [RANGE 1 SECOND], y [RANGE 1 SECOND] WHERE x.k = y.k"
    deployment = braid.plan(text, statistics, cloud_regions(), planner=planner, cost="communication", sink="us-east-1")
    assert deployment.cost == 0
    assert list(deployment.programs) == ["us-east-1"]
    assert any(isinstance(step, Join) for step in deployment.programs["us-east-1"].instructions)


@planners
def test_one_stream_is_delivered(planner: str) -> None:
    statistics = Statistics(rates={"x": 5}, sites={"x": "n0"})
    deployment = braid.plan("SELECT x.k FROM x [NOW]", statistics, random_geometric(9), planner=planner, sink="n4")
    assert deployment.cost == pytest.approx(5 * random_geometric(9).distance("n0", "n4"))


@planners
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sites": {"x": "n0"}}, "no site has stream 'y'"),
        ({"rates": {"y": 1}}, "rate of stream 'x' is not known"),
        ({"selectivities": {}}, r"selectivity of x\.k = y\.k is not known"),
    ],
)
def test_missing_statistics_are_named(planner: str, change: dict[str, dict[str, object]], message: str) -> None:
    known = {"rates": {"x": 1, "y": 1}, "selectivities": {"x.k = y.k": 0.1}, "sites": {"x": "n0", "y": "n1"}}
    text = "SELECT * FROM x [RANGE 1 SECOND], y [RANGE 1 SECOND] WHERE x.k = y.k"
    with pytest.raises(PlanningError, match=message):
        braid.plan(text, Statistics(**{**known, **change}), random_geometric(3), planner=planner)
