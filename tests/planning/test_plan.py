"""`braid.plan`: its error messages for invalid arguments, and its explanations."""

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
        ({"cost": "money"}, "cost model 'money' needs row sizes"),
        ({"cost": "unit_time"}, "cost model 'unit_time' needs row sizes"),
        ({"sink": "n9"}, "the topology has no site 'n9'"),
        ({"sink": 9}, "the name of a site must be a string, not 9"),
        ({"planner": None}, "a planner must be a name such as 'exact' or a planner such as TopDown(), not None"),
        ({"planner": TopDown}, "or a planner such as TopDown(), not <class"),
        ({"planner": TopDown(max_cs=1)}, "clusters hold at least 2 sites, so max_cs cannot be 1; give 2 or more"),
        ({"planner": TopDown(max_cs=2.5)}, "max_cs must be a whole number, not 2.5"),  # type: ignore[arg-type]
        ({"cost": 3}, "a cost model must be a name such as 'network_usage' or a CostModel, not 3"),
        ({"deadline": "soon"}, "a deadline is in seconds, 0 or more, not 'soon'"),
        ({"deadline": float("nan")}, "a deadline is in seconds, 0 or more, not nan"),
        ({"advertised": None}, "advertised must be an Iterable, not None"),
        ({"advertised": ["a"]}, "an item of advertised (see Deployment.advertised) must be an Advertisement, not 'a'"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(braid.BraidError, match=re.escape(message)):
        braid.plan(TEXT, KNOWN, star(2), **options)


@pytest.mark.parametrize("make", [lambda: InNetwork(zones=0), lambda: Relaxation(iterations=0)])
def test_planner_settings_that_are_not_positive(make: Callable[[], object]) -> None:
    with pytest.raises(braid.PlanningError, match="must be 1 or more, not 0"):
        make()


@pytest.mark.parametrize("planner", ["exact", "exhaustive", "top_down", "bottom_up", "npc", "left_deep", "phased"])
def test_planners_that_refuse_15_streams_name_one_that_accepts_them(planner: str) -> None:
    workload = synthetic(star(3), streams=15, queries=1, joins=(14, 14))
    request = workload.requests[0]
    with pytest.raises(
        braid.PlanningError, match=f"'{planner}' takes at most 14 streams, and the query has 15"
    ) as error:
        braid.plan(request.query, workload.statistics, workload.topology, planner=planner)
    for offered in re.findall("planner='(.+?)'", str(error.value)):
        assert braid.plan(request.query, workload.statistics, workload.topology, planner=offered).cost >= 0


def test_a_link_without_a_figure_that_the_cost_model_needs() -> None:
    topology = braid.Topology.from_links([Link("n0", "n1", price_per_gb=0.1)])
    with pytest.raises(braid.TopologyError, match="link n0 - n1 has no latency; give it, or choose a cost model"):
        braid.plan(TEXT, KNOWN, topology)


def test_a_stream_at_an_unknown_site() -> None:
    statistics = braid.Statistics(rates=KNOWN.rates, selectivities=KNOWN.selectivities, sites={"a": "n0", "b": "x"})
    with pytest.raises(braid.TopologyError, match="the topology has no site 'x'"):
        braid.plan(TEXT, statistics, star(2))


def test_arguments_of_the_wrong_type() -> None:
    with pytest.raises(braid.PlanningError, match="planning needs a Statistics, not dict"):
        braid.plan(TEXT, {"rates": {}}, star(2))  # type: ignore[arg-type]
    with pytest.raises(braid.PlanningError, match="planning needs a Topology, not NoneType"):
        braid.plan(TEXT, KNOWN, None)  # type: ignore[arg-type]


def test_an_ambiguous_column() -> None:
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
    with pytest.raises(braid.PlanningError, match=r"joining a, b may exceed 1e\+300, too large .* check which of them"):
        braid.plan(TEXT, known, star(2))
    with pytest.raises(braid.PlanningError, match=r"paths that cost up to 1e\+160 \(network_usage\)"):
        braid.plan(TEXT, KNOWN, braid.Topology.from_links([("n0", "n1", 1e160)]))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("planner", sorted(PLANNERS))
@pytest.mark.parametrize("cost", sorted(MODELS))
def test_large_figures_that_do_not_overflow(planner: str, cost: str) -> None:
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
def test_a_histogram_with_a_value_that_no_column_can_hold(value: Hashable, problem: str) -> None:
    with pytest.raises(braid.BraidError, match=re.escape(problem)):
        braid.Statistics(histograms={"a.k": {value: 3.0}})


@pytest.mark.parametrize("figure", [-1, float("nan"), float("inf"), "1", None])
def test_a_cost_model_with_invalid_figures(figure: Any) -> None:
    reason = re.escape(f"cannot be {figure!r}; give a number of 0 or more")
    with pytest.raises(braid.PlanningError, match=f"factor of cost model 'm' {reason}"):
        LinkModel("m", "units", "latency", factor=figure)
    with pytest.raises(braid.PlanningError, match=f"probe of cost model 'unit_time' {reason}"):
        UnitTime(probe=figure)


def test_a_cluster_size_that_equals_a_cached_one_is_still_checked() -> None:
    network = star(4)
    assert braid.plan(TEXT, KNOWN, network, planner=TopDown(2)).cost >= 0
    for size in (2.0, True):
        with pytest.raises(braid.PlanningError, match=f"max_cs must be a whole number, not {size}"):
            braid.plan(TEXT, KNOWN, network, planner=TopDown(size))  # type: ignore[arg-type]


def test_two_models_with_the_same_name_have_separate_hierarchies() -> None:
    """A topology caches hierarchies by cost model, and not by the name of the cost model."""
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


def test_a_cost_model_that_is_not_hashable() -> None:
    class Mine(Communication):
        __hash__ = None  # type: ignore[assignment]

    with pytest.raises(braid.PlanningError, match="must be immutable and hashable: make Mine frozen"):
        braid.plan(TEXT, KNOWN, star(2), cost=Mine())


def test_a_deadline_of_zero_seconds() -> None:
    with pytest.raises(braid.BraidError, match="did not finish within 0 s"):
        braid.plan(TEXT, KNOWN, star(2), deadline=0)


def test_money_follows_the_prices_of_the_path() -> None:
    statistics = braid.Statistics(
        rates={"a": 1_000, "b": 10},
        sizes={"a": 100, "b": 100},
        selectivities={"a.k = b.k": 0.0001},
        sites={"a": "sa-east-1", "b": "us-east-1"},
    )
    deployment = braid.plan(TEXT, statistics, cloud_regions(), cost="money", sink="us-east-1")
    assert list(deployment.placement.values()) == ["sa-east-1"]
    # b is shipped at 0.02 per GB; the result, 2 rows of 200 bytes a second, is shipped back at 0.138 per GB.
    gigabytes = 3_600 / 1e9
    assert deployment.cost == pytest.approx((10 * 100 * 0.02 + 2 * 200 * 0.138) * gigabytes)
    assert deployment.bill.unit == "USD/hour"


def test_the_explanation_lists_every_charge() -> None:
    plan = braid.plan(TEXT, KNOWN, star(2), sink="n0")
    text = plan.explain()
    assert plan._repr_html_().startswith("<b>plan by exact</b><pre")
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
