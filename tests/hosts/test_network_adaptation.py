"""The controller of a network, told the time: what plan changes are predicted to save, and what they have saved."""

from dataclasses import replace

import pyarrow as pa
import pytest

import braid
from braid.adapt.controller import Policy
from braid.adapt.network.figures import INTAKES, SiteFigures
from braid.channels.memory import MemoryChannels
from braid.hosts.deployment_request import DeploymentRequest
from braid.hosts.network_adaptation import SETTLED, CentralAdaptation
from braid.hosts.registry import Registry
from braid.model.statistics import Statistics
from braid.model.stream import Stream
from braid.planning.relocation import moved
from braid.runtime.migration.change import Answered, Promise, Ready, Verdict

SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "k": pa.int64(), "n": pa.int64()})
NETWORK = braid.Topology.from_links([("paris", "lyon", 0.004), ("lyon", "nice", 0.006)])
TEXT = "SELECT a.n AS an, b.n AS bn FROM a [RANGE 9 SECONDS], b [RANGE 9 SECONDS] WHERE a.k = b.k"
KNOWN = Statistics(rates={"a": 10, "b": 40}, selectivities={"a.k = b.k": 0.001})


@pytest.fixture
def registry() -> Registry:
    registry = Registry(NETWORK, MemoryChannels())
    for name, site in {"a": "paris", "b": "lyon"}.items():
        registry.declare(site, Stream(name, SCHEMA, "ts"))
    registry.deploy(DeploymentRequest(TEXT, "pairs", "lyon", statistics=KNOWN))
    return registry


def tell(registry: Registry, generation: int, site: str) -> None:
    """The figures of all sites: as was known, but the join gives few rows."""
    rates = {"a": 10.0, "b": 40.0}
    registry.figures.tell("pairs", SiteFigures("paris", INTAKES, rates, dict.fromkeys("ab", 100.0), reached=1))
    join = {frozenset("ab"): 0.5}
    registry.figures.tell("pairs", SiteFigures(site, generation, join, {frozenset("ab"): 200.0}, reached=1))


def move(registry: Registry, operator: str, site: str) -> None:
    """A move that is asked for, and carried out by all sites."""
    plan = moved(registry.plans.running(registry.deployment("pairs")), operator, site)
    change = registry.begin_change("pairs", plan, f"move {operator} to {site}", 0.0)
    facts = [*(Ready(one) for one in change.preparing), Verdict(go=True)]
    for fact in (*facts, *(Promise(one, 7) for one in change.answering), *(Answered(one) for one in change.answering)):
        registry.changes.say(change, fact)
    state = registry.changes.state(change)
    registry.retire(registry.deployment("pairs"), state)
    registry.changes.record(state, 1.0, 0)
    registry.changes.end(state)


def test_a_move_by_hand_has_what_was_predicted_and_what_was_measured(registry: Registry) -> None:
    adaptation = CentralAdaptation("pairs", registry, Policy())
    tell(registry, 1, "lyon")
    assert adaptation.look(registry.deployment("pairs"), 0.0) is None
    move(registry, "a ⋈ b", "paris")
    (found,) = registry.changes.history("pairs")
    assert found.predicted == pytest.approx(1 - (40 * 100 + 0.5 * 200) / (10 * 100))
    assert found.measured is None
    registry.figures.pin("pairs")
    tell(registry, 2, "paris")
    for time in (2.0, 2.0 + SETTLED / 2, 3.0 + SETTLED):
        adaptation.look(registry.deployment("pairs"), time)
    assert registry.changes.history("pairs") == [replace(found, measured=pytest.approx(found.predicted))]


def test_nothing_is_predicted_as_long_as_nothing_is_measured(registry: Registry) -> None:
    move(registry, "a ⋈ b", "paris")
    (found,) = registry.changes.history("pairs")
    assert found.predicted is None


def test_a_controller_takes_back_a_move_but_not_by_its_first_figures(
    registry: Registry,
) -> None:
    adaptation = CentralAdaptation("pairs", registry, Policy())
    move(registry, "a ⋈ b", "paris")
    tell(registry, 2, "paris")
    assert adaptation.look(registry.deployment("pairs"), 100.0) is None
    proposal = adaptation.look(registry.deployment("pairs"), 130.0)
    assert proposal is not None
    assert "a ⋈ b at lyon" in proposal.plan.explain()
    assert proposal.predicted == pytest.approx(1 - (10 * 100) / (40 * 100 + 0.5 * 200))
