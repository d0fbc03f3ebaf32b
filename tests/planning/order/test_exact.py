"""The dynamic program finds plans as cheap as exhaustive search does, on random networks and under every cost model."""

from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import braid
from braid.errors import PlanningError
from braid.model.network.sites import Link
from braid.model.network.topology import Topology
from braid.model.statistics import Statistics
from braid.planning.cost.models import MODELS, LinkModel, UnitTime
from braid.planning.deadline import NO_DEADLINE, Deadline
from braid.planning.order import exact
from braid.planning.plan import plan
from braid.planning.problem import Problem
from braid.planning.transport import Dense, Sparse
from braid.workloads.synthetic import synthetic
from braid.workloads.workload import Workload


def random_network(sites: int, seed: int) -> Topology:
    """A random tree with some additional links; each link has all figures."""
    generator = np.random.default_rng(seed)
    names = [f"n{number}" for number in range(sites)]
    pairs = {(int(generator.integers(number)), number) for number in range(1, sites)}
    pairs |= {(a, b) for b in range(sites) for a in range(b) if generator.random() < 0.3}
    links = (
        Link(names[a], names[b], *(float(generator.uniform(0.1, 5.0)) for _ in range(4)), one_way=False)
        for a, b in sorted(pairs)
    )
    return Topology.from_links(links, sites=names)


cases = st.tuples(
    st.integers(2, 5), st.integers(2, 4), st.integers(0, 10_000), st.sampled_from(sorted(MODELS)), st.booleans()
)


@given(cases)
@settings(max_examples=40, deadline=None)
def test_exact_costs_what_exhaustive_costs(case: tuple[int, int, int, str, bool]) -> None:
    sites, streams, seed, model, delivered = case
    workload = synthetic(random_network(sites, seed), streams=4, queries=1, joins=(streams - 1, streams - 1), seed=seed)
    request = workload.requests[0]
    statistics = replace(workload.statistics, sizes={f"s{number}": 10.0 * (number + 1) for number in range(4)})
    sink = request.sink if delivered else None
    exact_plan = plan(request.query, statistics, workload.topology, cost=model, sink=sink)
    searched = plan(request.query, statistics, workload.topology, planner="exhaustive", cost=model, sink=sink)
    assert exact_plan.cost == pytest.approx(searched.cost, rel=1e-9)


@given(st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
def test_exact_costs_what_exhaustive_costs_with_derived_streams(seed: int) -> None:
    exact_and_exhaustive_agree(synthetic(random_network(4, seed), streams=5, queries=4, joins=(1, 3), seed=seed))


def exact_and_exhaustive_agree(workload: Workload) -> None:
    """Compare both planners on the last query, which may reuse joins of the queries before; reuse never costs more."""
    *before, _ = workload.solve("exact")
    advertised = [advertisement for deployment in before for advertisement in deployment.advertised][:6]
    request = workload.requests[-1]
    exact_plan, searched = (
        plan(
            request.query,
            workload.statistics,
            workload.topology,
            planner=planner,
            sink=request.sink,
            advertised=advertised,
        )
        for planner in ("exact", "exhaustive")
    )
    assert exact_plan.cost == pytest.approx(searched.cost, rel=1e-9, abs=1e-9)
    alone = plan(request.query, workload.statistics, workload.topology, sink=request.sink)
    assert exact_plan.cost <= alone.cost * (1 + 1e-9)


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_sparse_and_dense_networks_give_the_same_cost(seed: int) -> None:
    topology = random_network(12, seed)
    workload = synthetic(topology, streams=5, queries=1, joins=(4, 4), seed=seed)
    request = workload.requests[0]

    class Paths(LinkModel):
        def transport(self, topology: Topology, deadline: Deadline = NO_DEADLINE) -> Sparse:
            return Sparse(topology.graph(topology.lengths("latency")))

    usage = MODELS["network_usage"]
    assert isinstance(usage.transport(topology), Dense)
    dense = plan(request.query, workload.statistics, topology, sink=request.sink)
    sparse = plan(
        request.query,
        workload.statistics,
        topology,
        sink=request.sink,
        cost=Paths("paths", "bytes in transit", "latency"),
    )
    assert sparse.cost == pytest.approx(dense.cost, rel=1e-9)


def test_the_cost_of_the_table_is_the_cost_of_the_bill() -> None:
    workload = synthetic(random_network(8, 3), streams=6, queries=5, seed=3)
    for deployment in workload.solve("exact"):
        problem = deployment.solution.problem
        optimum = exact.optimise(exact.inputs_of(problem))
        delivered = optimum.make_costs[-1] + problem.transport.costs_to(optimum.inputs.volumes[-1], problem.sink)
        assert delivered.min() == pytest.approx(deployment.cost, rel=1e-9, abs=1e-9)


def test_a_line_of_three_by_hand() -> None:
    topology = Topology.from_links([("l", "m", 1.0), ("m", "r", 1.0)])
    query = braid.parse("SELECT * FROM a [RANGE 1 SECOND], b [RANGE 1 SECOND] WHERE a.x = b.x")
    statistics = Statistics(rates={"a": 10, "b": 4}, selectivities={"a.x = b.x": 0.025}, sites={"a": "l", "b": "r"})
    # The join yields 0.025 * (10 * 4 + 4 * 10) = 2 a second: b goes to a, the result to the middle.
    deployment = plan(query, statistics, topology, sink="m")
    assert deployment.cost == pytest.approx(4 * 2 + 2 * 1)
    assert list(deployment.placement.values()) == ["l"]
    assert [charge.what for charge in deployment.bill.charges if charge.amount] == ["ship b", "deliver a ⋈ b"]


def test_no_unnecessary_cross_product() -> None:
    topology = Topology.from_links([("l", "m", 1.0)])
    query = braid.parse(
        "SELECT * FROM a [RANGE 9 SECONDS], b [RANGE 9 SECONDS], c [RANGE 9 SECONDS] WHERE a.x = b.x AND b.y = c.y"
    )
    statistics = Statistics(
        rates=dict.fromkeys("abc", 10.0),
        selectivities={"a.x = b.x": 0.1, "b.y = c.y": 0.1},
        sites=dict.fromkeys("abc", "l"),
    )
    deployment = plan(query, statistics, topology)
    assert deployment.cost == 0
    assert frozenset("ac") not in {merge.streams for merge in deployment.placement}


@pytest.mark.parametrize("planner", ["exact", "optimal", "left_deep", "exhaustive"])
def test_some_joins_are_free_and_others_are_not(planner: str) -> None:
    """No pair of rows matches, so the first join yields nothing: only it has work to do."""
    topology = Topology.from_links([Link("l", "m", 1.0, 1e6)])
    windows = ", ".join(f"{name} [RANGE 1 SECOND]" for name in "abc")
    statistics = Statistics(
        rates={"a": 10, "b": 20, "c": 30},
        sizes=dict.fromkeys("abc", 1.0),
        selectivities={"a.v < b.v": 0.0, "b.v < c.v": 0.0, "a.v < c.v": 0.0},
        sites=dict.fromkeys("abc", "l"),
    )
    query = braid.parse(f"SELECT * FROM {windows} WHERE a.v < b.v AND b.v < c.v AND a.v < c.v")
    deployment = plan(query, statistics, topology, planner=planner, cost=UnitTime(update=0.0, probe=1e-3))
    # The rows of a probe 20 of b, and those of b 10 of a.
    assert deployment.cost == pytest.approx((10 * 20 + 20 * 10) * 1e-3)


def test_the_deadline_is_checked_for_every_block_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = synthetic(random_network(3, 1), streams=6, queries=1, joins=(5, 5))
    request = workload.requests[0]
    model = MODELS["network_usage"]
    ticks = count()
    deadline = Deadline.of("exact", 1e9, lambda: float(next(ticks)))
    problem = Problem.of(request.query, workload.statistics, workload.topology, model, request.sink, deadline=deadline)
    whole = exact.Exact().plan(problem)
    assert next(ticks) >= 2**6 - 2
    monkeypatch.setattr(exact, "CELLS_AT_A_TIME", 6)
    before = next(ticks)
    in_blocks = exact.Exact().plan(problem)
    assert next(ticks) - before >= in_blocks.considered / 6
    assert (in_blocks.tree, in_blocks.bill) == (whole.tree, whole.bill)


def test_exact_refuses_more_than_14_streams() -> None:
    topology = Topology.from_links([("l", "m", 1.0)])
    workload = synthetic(topology, streams=15, queries=1, joins=(14, 14))
    with pytest.raises(PlanningError, match="at most 14 streams, and the query has 15; choose planner='stream_join"):
        next(workload.solve("exact"))


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(400))
def test_exact_costs_what_exhaustive_costs_sweep(seed: int) -> None:
    network = random_network(2 + seed % 5, seed)
    exact_and_exhaustive_agree(synthetic(network, streams=5, queries=3, joins=(1, 3), seed=seed))
