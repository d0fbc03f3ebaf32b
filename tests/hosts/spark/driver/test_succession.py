"""What is left of plans that have ended goes, whoever dies or is away meanwhile, and in whatever order."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import braid
from braid.channels.batch import Batch
from braid.channels.directories import DirectoryChannels
from braid.channels.memory import MemoryChannel, MemoryChannels
from braid.hosts.deployment_request import DeploymentRequest
from braid.hosts.registry import Registry
from braid.hosts.spark.driver.succession import Succession
from braid.hosts.spark.shared.results_source import ResultsReader
from braid.model.statistics import Statistics
from braid.model.stream import Stream
from braid.runtime.migration.change import Answered, Change, Promise, Ready, Stopped, Verdict

TRIANGLE = braid.Topology.from_links([("paris", "lyon", 0.004), ("lyon", "nice", 0.006), ("paris", "nice", 0.009)])
KNOWN = Statistics(rates={"a": 10, "b": 12}, selectivities={"a.k = b.k": 0.001})
SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "k": pa.int64(), "n": pa.int64()})
PAIRS = "SELECT a.n AS an, b.n AS bn FROM a [RANGE 20 SECONDS], b [RANGE 9 SECONDS] WHERE a.k = b.k"


def deployed_over(channels: MemoryChannels | DirectoryChannels) -> Registry:
    registry = Registry(TRIANGLE, channels)
    for name, site in {"a": "paris", "b": "lyon"}.items():
        registry.declare(site, Stream(name, SCHEMA, "ts"))
    registry.deploy(DeploymentRequest(PAIRS, "pairs", "lyon", planner="at_sink", statistics=KNOWN))
    return registry


def change(registry: Registry, sink: str, moment: int) -> Change:
    """Change to a plan that joins at another site; the old plan has answered, and has not stopped."""
    deployed = registry.deployment("pairs")
    plan = braid.plan(deployed.query, replace(KNOWN, sites=deployed.origins), TRIANGLE, sink=sink, planner="at_sink")
    begun = registry.begin_change("pairs", plan, "a test", 0.0)
    facts = [*map(Ready, begun.preparing), Verdict(go=True)]
    facts += [Promise(site, moment) for site in begun.answering] + [Answered(site) for site in begun.answering]
    for fact in facts:
        registry.changes.say(begun, fact)
    return begun


def coordinate(registry: Registry, channels: MemoryChannels) -> list[int]:
    """Let the coordinators look some times; returns the generations that are left."""
    for _ in range(4):
        Succession("pairs", registry, channels).take_part(TRIANGLE.names, {})
    return [generation.number for generation in registry.deployment("pairs").generations]


def stop(registry: Registry, begun: Change) -> None:
    for site in registry.deployment("pairs").generation(begun.old).sites:
        registry.changes.say(begun, Stopped(site))


def test_a_plan_that_ended_later_waits_for_one_that_cannot_go_yet() -> None:
    """A site of the first plan is away: no gap between reigns may come, and a third change is not held up."""
    channels = MemoryChannels()
    registry = deployed_over(channels)
    first = change(registry, "nice", 100)
    assert coordinate(registry, channels) == [1, 2]
    second = change(registry, "paris", 200)
    coordinate(registry, channels)
    stop(registry, second)
    assert coordinate(registry, channels) == [1, 2, 3]
    third = change(registry, "lyon", 300)
    assert coordinate(registry, channels) == [1, 2, 3, 4]
    assert registry.deployment("pairs").current.number == 4
    for begun in (first, third):
        stop(registry, begun)
    assert coordinate(registry, channels) == [4]
    assert registry.changes.under_way("pairs") is None


class Died(Exception):  # noqa: N818
    pass


def test_a_coordinator_that_dies_while_it_removes_a_plan_removes_all_of_it_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    channels = MemoryChannels()
    registry = deployed_over(channels)
    begun = change(registry, "nice", 100)
    coordinate(registry, channels)
    stop(registry, begun)

    def die(channel: MemoryChannel, subscriber: str) -> None:
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(MemoryChannel, "unsubscribe", die)
        with pytest.raises(Died):
            coordinate(registry, channels)
    assert coordinate(registry, channels) == [2]
    deployed = registry.deployment("pairs")
    subscribers = {name for channel in deployed.published for name in channels.open(channel).released()}
    assert not [name for name in subscribers if "#1" in name]


def test_a_reader_goes_on_when_a_channel_that_it_has_read_is_removed(tmp_path: Path) -> None:
    """It asks from time to time which channels there are; one may go in between."""
    channels = DirectoryChannels(tmp_path)
    registry = deployed_over(channels)
    (name,) = registry.deployment("pairs").results
    channels.open(name).publish(Batch.behind(None, name, 0, (), 100))
    reader = ResultsReader(channels.to_json(), "pairs", registry.deployment("pairs").reader, 1 << 20)
    _, offset = reader.read({})
    assert offset == {name: [0, 100]}
    begun = change(registry, "nice", 100)
    Succession("pairs", registry, channels).take_part(TRIANGLE.names, {})
    stop(registry, begun)
    registry.forget_generation(registry.deployment("pairs"), 1)
    reader._asked = float("inf")  # It does not ask before it has to.
    _, offset = reader.read(offset)
    assert list(offset) == registry.deployment("pairs").results
