"""`braid.plan`: what it says about input it cannot use, and what it shows."""

import pytest

import braid
from braid.model.networks import cloud_regions, star
from braid.model.topology import Link

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
    ],
)
def test_bad_options(options: dict[str, str], message: str) -> None:
    with pytest.raises(braid.BraidError, match=message):
        braid.plan(TEXT, KNOWN, star(2), **options)


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
