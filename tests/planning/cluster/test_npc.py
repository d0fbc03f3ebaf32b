"""Net present cost, computed by hand: the remote stream decides whether to join the local streams now or to wait."""

from dataclasses import replace

import pytest

import braid
from braid.model.network.topology import Topology
from braid.model.statistics import Statistics
from braid.planning.cluster.bottom_up import BottomUp
from braid.planning.cluster.npc import NetPresentCost
from braid.planning.cluster.top_down import TopDown
from braid.planning.cost.models import UnitTime
from braid.planning.deployment import Deployment
from braid.planning.order.exhaustive import search_space
from braid.testing.networks import CHAIN, TWO_SIDES

TRIAL = search_space(2, 3)
"""The plans of a and b on the left that are considered in the trial before the decision to wait."""


def planned(planner: TopDown | BottomUp, rate: float, selectivity: float) -> Deployment:
    """A plan for two slow streams on the left, which has the sink, and a third stream on the right."""
    statistics = Statistics(
        rates={"a": 1, "b": 1, "c": rate},
        selectivities={"a.k = b.k": 0.5, "b.j = c.j": selectivity},
        sites={"a": "l1", "b": "l2", "c": "r1"},
    )
    return braid.plan(CHAIN, statistics, TWO_SIDES, planner=planner, sink="l0")


def timed(planner: TopDown | BottomUp, bandwidth: float, probe: float = 1e-7) -> int:
    """The number of plans considered under `UnitTime`; the link between the sides has 100 s latency and a bandwidth."""
    links = [replace(link, bandwidth=bandwidth if link.latency == 100 else 1e3) for link in TWO_SIDES.links]
    statistics = Statistics(
        rates={"a": 1, "b": 1, "c": 0.1},
        sizes={"a": 10, "b": 10, "c": 10},
        selectivities={"a.k = b.k": 0.5, "b.j = c.j": 0.5},
        sites={"a": "l1", "b": "l2", "c": "r1"},
    )
    network = Topology(TWO_SIDES.sites, tuple(links))
    return braid.plan(CHAIN, statistics, network, planner=planner, cost=UnitTime(probe=probe), sink="l0").considered


def test_the_latency_of_a_path_counts_whatever_is_shipped() -> None:
    # The result has 7.5 rows of 30 bytes a second. With a low bandwidth, waiting may cost 0.5 * (100 + 225), joining
    # now about 4 and 0.5 * (100 + 1). With a high bandwidth shipping costs the same, and joining now costs more.
    assert timed(NetPresentCost(3), bandwidth=1) == timed(BottomUp(3), bandwidth=1)
    assert timed(NetPresentCost(3), bandwidth=1e6) == timed(TopDown(3), bandwidth=1e6) + TRIAL
    assert timed(BottomUp(3), bandwidth=1) < timed(TopDown(3), bandwidth=1)


def test_joining_now_costs_its_work() -> None:
    # a and b each probe 10 rows a second: 20 * 10 s of work a second are more than waiting may cost.
    assert timed(NetPresentCost(3), bandwidth=1, probe=10) == timed(TopDown(3), bandwidth=1, probe=10) + TRIAL
    assert timed(NetPresentCost(3), bandwidth=1, probe=1) == timed(BottomUp(3), bandwidth=1, probe=1)


def first_join(deployment: Deployment) -> set[str]:
    return set(next(iter(deployment.placement)).streams)


def test_it_does_not_wait_for_a_slow_remote_stream() -> None:
    # The result has 0.25 * 30 = 7.5 rows a second. The top cluster adds half of the sites, at a distance of 100:
    # waiting may cost 0.5 * 100 * 7.5 = 375, joining now the join itself, about 12, and 0.5 * 100 * 0.1 = 5.
    now = planned(NetPresentCost(3), 0.1, 0.5)
    assert first_join(now) == {"a", "b"}
    bottom_up = planned(BottomUp(3), 0.1, 0.5)
    assert (now.cost, now.considered) == (pytest.approx(bottom_up.cost), bottom_up.considered)
    assert now.considered < planned(TopDown(3), 0.1, 0.5).considered


def test_it_waits_for_a_fast_remote_stream() -> None:
    # The result has 0.15 rows a second, so waiting may cost 7.5; shipping the remote stream costs 0.5 * 100 * 100.
    later = planned(NetPresentCost(3), 100, 1e-5)
    assert first_join(later) == {"b", "c"}
    top_down = planned(TopDown(3), 100, 1e-5)
    assert (later.cost, later.considered) == (pytest.approx(top_down.cost), top_down.considered + TRIAL)
    assert first_join(planned(BottomUp(3), 100, 1e-5)) == {"a", "b"}
    assert later.cost < planned(BottomUp(3), 100, 1e-5).cost
