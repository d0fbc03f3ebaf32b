"""Exhaustive search considers as many plans as lemma 1 says."""

import pytest

import braid
from braid.errors import PlanningError
from braid.model.advertisement import Advertisement
from braid.model.network.generators import fully_connected
from braid.model.statistics import Statistics
from braid.planning.order.exhaustive import search_space
from braid.workloads.synthetic import synthetic


@pytest.mark.parametrize(("streams", "sites"), [(2, 3), (3, 4), (4, 3), (5, 2)])
def test_it_considers_what_lemma_1_counts(streams: int, sites: int) -> None:
    workload = synthetic(fully_connected(sites), streams=streams, queries=1, joins=(streams - 1, streams - 1))
    assert next(workload.solve("exhaustive")).considered == search_space(streams, sites)


def test_only_disjoint_offers_are_combined() -> None:
    """One join is offered at 40 sites: there are 41 ways to start, and not one for each of 2**40 sets of offers."""
    network = fully_connected(40)
    text = "SELECT * FROM a [NOW], b [NOW], c [NOW] WHERE a.k = b.k AND b.j = c.j"
    known = Statistics(
        rates={"a": 1, "b": 2, "c": 3},
        selectivities={"a.k = b.k": 0.1, "b.j = c.j": 0.1},
        sites={"a": "n0", "b": "n1", "c": "n2"},
    )
    joined = braid.parse("SELECT * FROM a [NOW], b [NOW] WHERE a.k = b.k")
    advertised = [Advertisement(joined, site) for site in network.names]
    deployment = braid.plan(text, known, network, planner="exhaustive", advertised=advertised)
    assert deployment.considered == search_space(3, 40) + 40 * search_space(2, 40)
    assert deployment.cost == braid.plan(text, known, network, advertised=advertised).cost == 0


def test_the_counts_of_the_paper() -> None:
    assert search_space(5, 64) == 180 * 64**4
    assert f"{search_space(5, 64):.2e}" == "3.02e+09"
    assert f"{search_space(5, 128):.2e}" == "4.83e+10"


def test_too_many_plans_are_refused() -> None:
    workload = synthetic(fully_connected(64), streams=5, queries=1, joins=(4, 4))
    with pytest.raises(PlanningError, match=r"3.02e\+09 plans are too many .* choose planner='exact'"):
        next(workload.solve("exhaustive"))
