"""`braid.plan`: what it says about input it cannot use, and what it shows."""

import re
from collections.abc import Callable, Hashable
from dataclasses import replace
from fractions import Fraction
from math import isfinite
from typing import Any

import pytest

import braid
from braid.model.network.generators import cloud_regions, random_geometric, star
from braid.model.network.sites import Link
from braid.planning.cluster.top_down import TopDown
from braid.planning.cost.models import MODELS, Communication, LinkModel, UnitTime
from braid.planning.place.in_network import InNetwork
from braid.planning.place.relaxation import Relaxation
from braid.planning.planners import PLANNERS
from braid.workloads.synthetic import synthetic

TEXT = "SELECT a.k FROM a [RANGE 1 SECOND], b [RANGE 1 SECOND] WHERE a.k = b.k"
KNOWN = braid.Statistics(rates={"a": 10, "b": 5}, selectivities={"a.k = b.k": 0.1}, sites={"a": "n0", "b": "n1"})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"planner": "exakt"}, "there is no planner 'exakt'; did you mean 'exact'"),
        ({"cost": "mony"}, "there is no cost model 'mony'; did you mean 'money'"),
        ({"cost": "money"}, "cost model 'money' needs tuple sizes"),
        ({"cost": "unit_time"}, "cost model 'unit_time' needs tuple sizes"),
        ({"sink": "n9"}, "the topology has no site 'n9'"),
        ({"sink": 9}, "the name of a site must be a string, not 9"),
        ({"planner": None}, "a planner is one by name, such as 'exact', or one such as TopDown(), not None"),
        ({"planner": TopDown}, "or one such as TopDown(), not <class"),
        ({"planner": TopDown(max_cs=1)}, "clusters hold at least 2 sites, so max_cs cannot be 1; give 2 or more"),
        ({"planner": TopDown(max_cs=2.5)}, "max_cs must be a whole number, not 2.5"),  # type: ignore[arg-type]
        ({"cost": 3}, "a cost model is one by name, such as 'network_usage', or a CostModel, not 3"),
        ({"deadline": "soon"}, "a deadline is in seconds, 0 or more, not 'soon'"),
        ({"deadline": float("nan")}, "a deadline is in seconds, 0 or more, not nan"),
        ({"advertised": None}, "what is advertised must be an Iterable, not None"),
        ({"advertised": ["a"]}, "what is advertised (Deployment.advertised has it) must be an Advertisement, not 'a'"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(braid.BraidError, match=re.escape(message)):
        braid.plan(TEXT, KNOWN, star(2), **options)


@pytest.mark.parametrize("make", [lambda: InNetwork(zones=0), lambda: Relaxation(iterations=0)])
def test_settings_that_make_no_sense(make: Callable[[], object]) -> None:
    with pytest.raises(braid.PlanningError, match="must be 1 or more, not 0"):
        make()


@pytest.mark.parametrize("planner", ["exact", "exhaustive", "top_down", "bottom_up", "npc", "left_deep", "phased"])
def test_planners_that_take_no_more_streams_name_one_that_does(planner: str) -> None:
    workload = synthetic(star(3), streams=15, queries=1, joins=(14, 14))
    request = workload.requests[0]
    with pytest.raises(
        braid.PlanningError, match=f"'{planner}' takes at most 14 streams, and the query has 15"
    ) as told:
        braid.plan(request.query, workload.statistics, workload.topology, planner=planner)
    for offered in re.findall("planner='(.+?)'", str(told.value)):
        assert braid.plan(request.query, workload.statistics, workload.topology, planner=offered).cost >= 0


def test_a_figure_that_a_link_does_not_have() -> None:
    topology = braid.Topology.from_links([Link("n0", "n1", price_per_gb=0.1)])
    with pytest.raises(braid.TopologyError, match="link n0 - n1 has no latency; give it, or choose a cost model"):
        braid.plan(TEXT, KNOWN, topology)


def test_a_stream_at_a_site_that_is_not_there() -> None:
    statistics = braid.Statistics(rates=KNOWN.rates, selectivities=KNOWN.selectivities, sites={"a": "n0", "b": "x"})
    with pytest.raises(braid.TopologyError, match="the topology has no site 'x'"):
        braid.plan(TEXT, statistics, star(2))


def test_things_of_the_wrong_kind() -> None:
    with pytest.raises(braid.PlanningError, match="planning needs a Statistics, not dict"):
        braid.plan(TEXT, {"rates": {}}, star(2))  # type: ignore[arg-type]
    with pytest.raises(braid.PlanningError, match="planning needs a Topology, not NoneType"):
        braid.plan(TEXT, KNOWN, None)  # type: ignore[arg-type]


def test_columns_without_their_stream() -> None:
    with pytest.raises(braid.QueryError, match="which stream does column 'k' belong to"):
        braid.plan("SELECT * FROM a [NOW], b [NOW] WHERE k = b.k", KNOWN, star(2))


@pytest.mark.parametrize(
    "figures",
    [
        {"rates": {"a": 1e308, "b": 1e308}},
        {"sizes": {"a": 1e308, "b": 10**308}},
        {"populations": {"a": 1e308, "b": 5}},
        {"rates": {"a": 1e200, "b": 5}, "sizes": {"a": 1e150, "b": 5}},
    ],
)
def test_figures_that_would_overflow(figures: dict[str, Any]) -> None:
    known = replace(KNOWN, **figures)
    with pytest.raises(braid.PlanningError, match=r"joining a, b may pass 1e\+300, too large .* check which of them"):
        braid.plan(TEXT, known, star(2))
    with pytest.raises(braid.PlanningError, match=r"ways that cost up to 1e\+160 \(network_usage\)"):
        braid.plan(TEXT, KNOWN, braid.Topology.from_links([("n0", "n1", 1e160)]))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("planner", sorted(PLANNERS))
@pytest.mark.parametrize("cost", sorted(MODELS))
def test_figures_that_just_do_not_overflow(planner: str, cost: str) -> None:
    network = braid.Topology.from_links(
        [Link("n0", "n1", 1e140, 1e-140, 1e140, 1e140), Link("n1", "n2", 1e140, 1e-140, 1e140, 1e140)]
    )
    known = replace(KNOWN, rates={"a": 1e60, "b": 1e60}, sizes={"a": 1e20, "b": 1e20})
    assert isfinite(braid.plan(TEXT, known, network, planner=planner, cost=cost, sink="n2").cost)


def test_a_histogram_that_overflows() -> None:
    with pytest.raises(braid.BraidError, match=r"the sum of the rates of all values of a\.k is too large"):
        braid.Statistics(histograms={"a.k": {1: 1e308, 2: 1e308}})
    known = replace(KNOWN, selectivities={}, histograms={"a.k": {1: 1e308}, "b.k": {1: 1e300, 2: 3e300}})
    assert braid.plan(TEXT, known, star(2), sink="n0").solution.problem.figures.rate(0b11) == pytest.approx(25)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ((5, 1), "the range (5, 1) in the histogram of a.k ends before it begins; swap its ends"),
        ((1.5, 2.5), "the histogram of a.k has (1.5, 2.5), which is not a range of whole numbers (first, last)"),
        ((1, 2, 3), "the histogram of a.k has (1, 2, 3), which is not a range of whole numbers (first, last)"),
        ((1, 10**400), "the histogram of a.k has a whole number of more than 38 digits; no column holds it"),
        (-(10**400), "the histogram of a.k has a whole number of more than 38 digits; no column holds it"),
        (Fraction(10**400), "the histogram of a.k has a whole number of more than 38 digits; no column holds it"),
        (1j, "the histogram of a.k has 1j; no column holds complex numbers"),
    ],
)
def test_a_histogram_of_what_no_column_holds(value: Hashable, problem: str) -> None:
    with pytest.raises(braid.BraidError, match=re.escape(problem)):
        braid.Statistics(histograms={"a.k": {value: 3.0}})


@pytest.mark.parametrize("figure", [-1, float("nan"), float("inf"), "1", None])
def test_a_cost_model_whose_figures_make_no_sense(figure: Any) -> None:
    told = re.escape(f"cannot be {figure!r}; give a number of 0 or more")
    with pytest.raises(braid.PlanningError, match=f"factor of cost model 'm' {told}"):
        LinkModel("m", "units", "latency", factor=figure)
    with pytest.raises(braid.PlanningError, match=f"probe of cost model 'unit_time' {told}"):
        UnitTime(probe=figure)


def test_a_cluster_size_that_is_like_one_used_before() -> None:
    network = star(4)
    assert braid.plan(TEXT, KNOWN, network, planner=TopDown(2)).cost >= 0
    for size in (2.0, True):
        with pytest.raises(braid.PlanningError, match=f"max_cs must be a whole number, not {size}"):
            braid.plan(TEXT, KNOWN, network, planner=TopDown(size))  # type: ignore[arg-type]


def test_two_models_of_one_name_have_their_own_hierarchies() -> None:
    """What a network is like under a model is kept by model: its name does not tell it from another one."""
    workload = synthetic(random_geometric(12, seed=3), streams=4, queries=1, joins=(3, 3))
    links = [Link(link.source, link.target, link.latency, cost_per_byte=1.0) for link in workload.topology.links]
    shared = braid.Topology.from_links(links)
    (request,) = workload.requests
    for attribute in ("latency", "cost_per_byte"):
        model = LinkModel("mine", "units", attribute)
        for planner in (TopDown(3), InNetwork(2), Relaxation(200)):
            alone = braid.Topology.from_links(links)
            costs = [
                braid.plan(request.query, workload.statistics, network, planner=planner, cost=model).explain()
                for network in (shared, alone)
            ]
            assert costs[0] == costs[1]


def test_a_cost_model_that_may_change() -> None:
    class Mine(Communication):
        __hash__ = None  # type: ignore[assignment]

    with pytest.raises(braid.PlanningError, match="must not change, and be hashable: make Mine frozen"):
        braid.plan(TEXT, KNOWN, star(2), cost=Mine())


def test_a_deadline_that_is_over_at_once() -> None:
    with pytest.raises(braid.BraidError, match="did not finish within 0 s"):
        braid.plan(TEXT, KNOWN, star(2), deadline=0)


def test_money_goes_by_the_prices_of_the_way() -> None:
    statistics = braid.Statistics(
        rates={"a": 1_000, "b": 10},
        sizes={"a": 100, "b": 100},
        selectivities={"a.k = b.k": 0.0001},
        sites={"a": "sa-east-1", "b": "us-east-1"},
    )
    deployment = braid.plan(TEXT, statistics, cloud_regions(), cost="money", sink="us-east-1")
    assert list(deployment.placement.values()) == ["sa-east-1"]
    # b goes out at 0.02 a GB, and the result, 2 tuples of 200 bytes a second, comes back at 0.138.
    gigabytes = 3_600 / 1e9
    assert deployment.cost == pytest.approx((10 * 100 * 0.02 + 2 * 200 * 0.138) * gigabytes)
    assert deployment.bill.unit == "USD/hour"


def test_the_explanation_names_every_cost() -> None:
    text = braid.plan(TEXT, KNOWN, star(2), sink="n0").explain()
    assert text.splitlines() == [
        "exact plan, 3 alternatives considered, result at n0",
        "a ⋈ b at n0",
        "  a at n0",
        "  b at n1",
        "cost (network_usage, bytes in transit)",
        "  ship b  n1 -> n0  10",
        "  total             10 bytes in transit",
    ]


def test_the_plan_of_a_deployment_runs() -> None:
    deployment = braid.plan(TEXT, KNOWN, star(2))
    assert deployment.plan.sequences == {"a": ("b",), "b": ("a",)}
    assert isinstance(deployment.plan, braid.Plan)
