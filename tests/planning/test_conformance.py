"""What every planner must do: give a valid plan, always the same one, in time, and count what it looked at."""

from itertools import count

import pytest

import braid
from braid.errors import DeadlineError, PlanningError
from braid.model.networks import cloud_regions, random_geometric
from braid.model.program import Emit, Join, Ship, SiteProgram, reads
from braid.model.statistics import Statistics
from braid.model.topology import Link, Topology
from braid.planning.cost.models import MODELS
from braid.planning.deployment import Deployment
from braid.planning.planners import PLANNERS
from braid.planning.problem import Deadline, Problem
from braid.planning.workloads.synthetic import synthetic
from braid.planning.workloads.workload import Workload

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
    made = synthetic(network(), streams=5, queries=queries, joins=(streams - 2, streams - 1), seed=7)
    sizes = {f"s{number}": 20.0 + number for number in range(5)}
    statistics = Statistics(
        rates=made.statistics.rates,
        sizes=sizes,
        selectivities=made.statistics.selectivities,
        sites=made.statistics.sites,
    )
    return Workload(made.requests, statistics, made.topology)


def check(deployment: Deployment) -> None:
    """Whether a deployment holds together."""
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
    """What is shipped arrives where somebody reads it; the result comes out, at the sink if there is one."""
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
    given = workload(3)
    for request in given.requests:
        sink = request.sink if delivered else None
        check(braid.plan(request.query, given.statistics, given.topology, planner=planner, cost=cost, sink=sink))


@planners
def test_plans_are_valid_with_derived_streams(planner: str) -> None:
    for deployment in workload().deploy(planner):
        check(deployment)


@planners
def test_derived_streams_never_make_a_plan_dearer_than_the_first_one_was(planner: str) -> None:
    given = workload(1)
    again = Workload(given.requests * 2, given.statistics, given.topology)
    first, second = again.deploy(planner)
    assert second.cost <= first.cost


@planners
def test_the_same_problem_gives_the_same_plan(planner: str) -> None:
    first, second = (list(workload().deploy(planner)) for _ in range(2))
    assert [deployment.explain() for deployment in first] == [deployment.explain() for deployment in second]


@planners
def test_nobody_is_better_than_exact(planner: str) -> None:
    given = workload(4)
    for cost in ("network_usage", "communication"):
        best = given.deploy("exact", cost, reuse=False)
        for optimum, deployment in zip(best, given.deploy(planner, cost, reuse=False), strict=True):
            assert deployment.cost >= optimum.cost * (1 - 1e-9)


@planners
def test_plans_considered_are_counted(planner: str) -> None:
    for deployment in workload().deploy(planner):
        assert deployment.considered >= 1


@planners
def test_the_deadline_is_respected(planner: str) -> None:
    given = workload(1)
    request = given.requests[0]
    problem = Problem.of(request.query, given.statistics, given.topology, MODELS["network_usage"], request.sink)
    ticks = count()
    with pytest.raises(DeadlineError, match=f"'{planner}' did not finish within 0.5 s; give it more time"):
        PLANNERS[planner].plan(problem, Deadline.of(0.5, lambda: float(next(ticks))))


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
def test_what_is_missing_is_said(planner: str, change: dict[str, dict[str, object]], message: str) -> None:
    known = {"rates": {"x": 1, "y": 1}, "selectivities": {"x.k = y.k": 0.1}, "sites": {"x": "n0", "y": "n1"}}
    text = "SELECT * FROM x [RANGE 1 SECOND], y [RANGE 1 SECOND] WHERE x.k = y.k"
    with pytest.raises(PlanningError, match=message):
        braid.plan(text, Statistics(**{**known, **change}), random_geometric(3), planner=planner)
