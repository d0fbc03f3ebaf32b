"""Net present cost, by hand: what is remote decides whether to join what is local now or to wait."""

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

SIDES = Topology.from_links(
    {(f"{side}0", f"{side}{number}"): 1.0 for side in "lr" for number in (1, 2)} | {("l0", "r0"): 100.0}
)
QUERY = "SELECT * FROM a [RANGE 10 SECONDS], b [RANGE 10 SECONDS], c [RANGE 10 SECONDS] WHERE a.k = b.k AND b.j = c.j"

FOR_NOTHING = search_space(2, 3)
"""Plans of a and b on the left, which are looked at before it is found better to wait."""


def planned(planner: TopDown | BottomUp, rate: float, selectivity: float) -> Deployment:
    """Two slow streams on the left, where the result is wanted; a third one on the right."""
    statistics = Statistics(
        rates={"a": 1, "b": 1, "c": rate},
        selectivities={"a.k = b.k": 0.5, "b.j = c.j": selectivity},
        sites={"a": "l1", "b": "l2", "c": "r1"},
    )
    return braid.plan(QUERY, statistics, SIDES, planner=planner, sink="l0")


def timed(planner: TopDown | BottomUp, bandwidth: float, probe: float = 1e-7) -> int:
    """How many plans are looked at when seconds count; the way between the sides has 100 s and a bandwidth."""
    links = [replace(link, bandwidth=bandwidth if link.latency == 100 else 1e3) for link in SIDES.links]
    statistics = Statistics(
        rates={"a": 1, "b": 1, "c": 0.1},
        sizes={"a": 10, "b": 10, "c": 10},
        selectivities={"a.k = b.k": 0.5, "b.j = c.j": 0.5},
        sites={"a": "l1", "b": "l2", "c": "r1"},
    )
    network = Topology(SIDES.sites, tuple(links))
    return braid.plan(QUERY, statistics, network, planner=planner, cost=UnitTime(probe=probe), sink="l0").considered


def test_a_way_costs_its_latency_whatever_is_sent() -> None:
    # The result has 7.5 tuples of 30 bytes a second. On a narrow way, waiting may cost 0.5 * (100 + 225), joining now
    # about 4 and 0.5 * (100 + 1); on a wide way both ways cost the same, and joining now comes on top.
    assert timed(NetPresentCost(3), bandwidth=1) == timed(BottomUp(3), bandwidth=1)
    assert timed(NetPresentCost(3), bandwidth=1e6) == timed(TopDown(3), bandwidth=1e6) + FOR_NOTHING
    assert timed(BottomUp(3), bandwidth=1) < timed(TopDown(3), bandwidth=1)


def test_joining_now_costs_its_work() -> None:
    # Each of a and b probes 10 tuples a second: 20 * 10 s of work a second are more than waiting may cost.
    assert timed(NetPresentCost(3), bandwidth=1, probe=10) == timed(TopDown(3), bandwidth=1, probe=10) + FOR_NOTHING
    assert timed(NetPresentCost(3), bandwidth=1, probe=1) == timed(BottomUp(3), bandwidth=1, probe=1)


def first_join(deployment: Deployment) -> set[str]:
    return set(next(iter(deployment.placement)).streams)


def test_a_trickle_from_afar_does_not_keep_anybody_waiting() -> None:
    # The result has 0.25 * 30 = 7.5 tuples a second. Half of the network comes into view at the top, 100 away:
    # waiting may cost 0.5 * 100 * 7.5 = 375, joining now the join itself, about 12, and 0.5 * 100 * 0.1 = 5.
    now = planned(NetPresentCost(3), 0.1, 0.5)
    assert first_join(now) == {"a", "b"}
    bottom_up = planned(BottomUp(3), 0.1, 0.5)
    assert (now.cost, now.considered) == (pytest.approx(bottom_up.cost), bottom_up.considered)
    assert now.considered < planned(TopDown(3), 0.1, 0.5).considered


def test_a_torrent_from_afar_is_better_waited_for() -> None:
    # The result has 0.15 tuples a second, so that waiting may cost 7.5; bringing the torrent here, 0.5 * 100 * 100.
    later = planned(NetPresentCost(3), 100, 1e-5)
    assert first_join(later) == {"b", "c"}
    top_down = planned(TopDown(3), 100, 1e-5)
    assert (later.cost, later.considered) == (pytest.approx(top_down.cost), top_down.considered + FOR_NOTHING)
    assert first_join(planned(BottomUp(3), 100, 1e-5)) == {"a", "b"}
    assert later.cost < planned(BottomUp(3), 100, 1e-5).cost
