"""Plans that users have made before: those that a query runs with, and those that are refused."""

from dataclasses import replace

import pyarrow as pa
import pytest

import braid
from braid.channels.memory import MemoryChannels
from braid.hosts.deployment_request import DeploymentRequest
from braid.hosts.registry import Registry
from braid.model.query import Query
from braid.model.stream import Stream
from braid.runtime.sites.deployed import Deployed
from braid.runtime.sites.fragment import Fragment
from tests.hosts.conftest import KNOWN, PAIRS, SCHEMA, SECOND, TRIANGLE, TRIPLES

SITES = {"a": "paris", "b": "lyon", "c": "nice"}
SKEWED = {
    "a.k": {1: 8.0, 2: 1.0, 3: 1.0},
    "b.k": {1: 1.0, 2: 10.0, 3: 1.0},
    "c.k": {1: 1.0, 2: 1.0, 3: 7.0},
}


@pytest.mark.parametrize("planner", ["exact", "greedy", "pmjoin"])
def test_a_plan_that_was_made_of_the_text_runs(registry: Registry, planner: str) -> None:
    known = replace(KNOWN, sites=SITES, histograms=SKEWED)
    of_text = braid.plan(f" {TRIPLES}", known, TRIANGLE, sink="nice", planner=planner)
    of_query = braid.plan(braid.parse(TRIPLES, registry.streams()), known, TRIANGLE, sink="nice", planner=planner)
    for name, plan in (("of text", of_text), ("of query", of_query)):
        registry.deploy(DeploymentRequest(TRIPLES, name, "nice", plan=plan))
    first, second = registry.deployment("of text"), registry.deployment("of query")
    assert first.current.written == second.current.written
    assert first.current.sites.keys() == second.current.sites.keys()
    assert fragments(first) == fragments(second)
    assert first.bill.total == pytest.approx(second.bill.total)
    at_sink = braid.plan(TRIPLES, known, TRIANGLE, sink="nice", planner="at_sink")
    registry.begin_change("of query", at_sink, "a test", 0.0)
    assert registry.changes.under_way("of query") is not None


def fragments(deployed: Deployed) -> list[Fragment]:
    return [fragment for spec in deployed.current.sites.values() for fragment in spec.work.fragments.values()]


@pytest.mark.parametrize(
    "query",
    [
        PAIRS.replace("20 SECONDS", "21 SECONDS"),
        PAIRS.replace("a.n AS an", "a.m AS an"),
        braid.parse(PAIRS, {name: Stream(name, SCHEMA.append(pa.field("m", pa.int64())), "ts") for name in "ab"}),
    ],
)
def test_a_plan_for_another_query_tells_how_to_plan_this_one(registry: Registry, query: str | Query) -> None:
    plan = braid.plan(query, replace(KNOWN, sites=SITES), TRIANGLE, sink="lyon")
    with pytest.raises(braid.PlanError, match=r"than 'pairs', or for other streams; give braid\.plan the text of this"):
        registry.deploy(DeploymentRequest(PAIRS, "pairs", "lyon", plan=plan))


def test_a_plan_of_the_text_that_reuses_joins_tells_how_to_plan_it(registry: Registry) -> None:
    known = replace(KNOWN, sites=SITES)
    first = braid.plan(PAIRS, known, TRIANGLE, sink="lyon")
    plan = braid.plan(TRIPLES, known, TRIANGLE, sink="nice", advertised=first.advertised)
    assert "(reused)" in plan.explain()
    with pytest.raises(braid.PlanError, match=r"reuses joins of others.*; plan braid\.parse\(text, streams\)"):
        registry.deploy(DeploymentRequest(TRIPLES, "triples", "nice", plan=plan))


@pytest.mark.parametrize(
    ("links", "sites", "differences"),
    [
        (
            [("berlin", "rome", 0.1)],
            {"a": "berlin", "b": "rome"},
            "there is no site 'berlin' and no site 'rome' here; stream 'a' starts at 'paris', and the plan has it "
            "start at 'berlin'; stream 'b' starts at 'lyon', and the plan has it start at 'rome'; plan the query",
        ),
        (
            [("paris", "rome", 0.001), ("rome", "lyon", 0.001)],
            {"a": "paris", "b": "lyon"},
            "there is no site 'rome' here; plan the query over this network",
        ),
        (
            [("paris", "lyon", 0.001), ("lyon", "nice", 0.001)],
            {"a": "nice", "b": "lyon"},
            "stream 'a' starts at 'paris', and the plan has it start at 'nice'; plan the query",
        ),
    ],
)
def test_a_plan_for_another_network_is_refused(
    registry: Registry, links: list[tuple[str, str, float]], sites: dict[str, str], differences: str
) -> None:
    deployed = registry.deploy(DeploymentRequest(PAIRS, "pairs", "lyon", statistics=KNOWN))
    other = braid.Topology.from_links(links)
    plan = braid.plan(deployed.query, replace(KNOWN, sites=sites), other, sink=sites["b"])
    message = f"the plan is for another network than that of query '{{}}': {differences}"
    with pytest.raises(braid.PlanError, match=message.format("pairs")):
        registry.begin_change("pairs", plan, "a test", 0.0)
    with pytest.raises(braid.PlanError, match=message.format("second")):
        registry.deploy(DeploymentRequest(PAIRS, "second", "lyon", plan=plan))
    assert registry.changes.under_way("pairs") is None
    assert set(registry.deployments()) == {"pairs"}


def test_a_plan_over_links_that_the_network_does_not_have_is_refused(channels: MemoryChannels) -> None:
    registry = Registry(braid.Topology.from_links([("paris", "nice", 0.1), ("nice", "lyon", 0.1)]), channels)
    for name, site in (("a", "paris"), ("b", "lyon")):
        registry.declare(site, Stream(name, SCHEMA, "ts", 1 * SECOND))
    plan = braid.plan(
        braid.parse(PAIRS, registry.streams()), replace(KNOWN, sites=registry.origins()), TRIANGLE, sink="lyon"
    )
    with pytest.raises(braid.PlanError, match=r"there is no link from '(paris' to 'lyon|lyon' to 'paris)' here"):
        registry.deploy(DeploymentRequest(PAIRS, "pairs", "lyon", plan=plan))
