"""Exhaustive search looks at as many plans as lemma 1 says."""

import pytest

from braid.errors import PlanningError
from braid.model.networks import fully_connected
from braid.planning.order.exhaustive import search_space
from braid.planning.workloads.synthetic import synthetic


@pytest.mark.parametrize(("streams", "sites"), [(2, 3), (3, 4), (4, 3), (5, 2)])
def test_it_considers_what_lemma_1_counts(streams: int, sites: int) -> None:
    workload = synthetic(fully_connected(sites), streams=streams, queries=1, joins=(streams - 1, streams - 1))
    assert next(workload.deploy("exhaustive")).considered == search_space(streams, sites)


def test_the_counts_of_the_paper() -> None:
    assert search_space(5, 64) == 180 * 64**4
    assert f"{search_space(5, 64):.2e}" == "3.02e+09"
    assert f"{search_space(5, 128):.2e}" == "4.83e+10"


def test_too_many_plans() -> None:
    workload = synthetic(fully_connected(64), streams=5, queries=1, joins=(4, 4))
    with pytest.raises(PlanningError, match=r"3.02e\+09 plans are too many .* choose planner='exact'"):
        next(workload.deploy("exhaustive"))
