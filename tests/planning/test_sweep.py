"""Long random sweeps over what planning promises; run by `make sweep`."""

import pytest

from braid.planning.cluster.bottom_up import BottomUp
from braid.planning.cluster.hierarchies import hierarchy_of
from braid.planning.cluster.npc import NetPresentCost
from braid.planning.cluster.top_down import TopDown
from braid.workloads.synthetic import synthetic
from tests.planning.cluster.test_bounds import most_considered, workload_of
from tests.planning.order.test_exact import exact_and_exhaustive_agree, random_network
from tests.planning.reuse.test_random import reuses

pytestmark = pytest.mark.sweep


@pytest.mark.parametrize("seed", range(400))
def test_exact_equals_exhaustive(seed: int) -> None:
    network = random_network(2 + seed % 5, seed)
    exact_and_exhaustive_agree(synthetic(network, streams=5, queries=3, joins=(1, 3), seed=seed))


@pytest.mark.parametrize("seed", range(100, 600))
def test_results_do_not_depend_on_what_is_reused(seed: int) -> None:
    reuses(seed)


@pytest.mark.parametrize("seed", range(150))
@pytest.mark.parametrize("max_cs", [3, 4, 6, 10])
def test_theorems_2_to_4(seed: int, max_cs: int) -> None:
    workload = workload_of(seed, geometric=seed % 2 == 0)
    for planner in (TopDown(max_cs), BottomUp(max_cs), NetPresentCost(max_cs)):
        for deployment in workload.solve(planner):
            assert deployment.considered <= most_considered(deployment, max_cs)
    best = workload.solve("exact", reuse=False)
    for optimum, deployment in zip(best, workload.solve(TopDown(max_cs), reuse=False), strict=True):
        hierarchy = hierarchy_of(deployment.solution.problem, max_cs)
        shipped = sum(charge.volume for charge in deployment.bill.charges)
        assert deployment.cost - optimum.cost <= shipped * hierarchy.error(hierarchy.height) + 1e-9
