"""What is left of plans that have ended goes, whoever dies or is away meanwhile, and in whatever order."""

from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import braid
from braid.channels.batch import Batch
from braid.channels.directories import DirectoryChannels
from braid.channels.memory import MemoryChannel, MemoryChannels
from braid.hosts.deployment_request import DeploymentRequest
from braid.hosts.drafts import DRAFT
from braid.hosts.registry import Registry
from braid.hosts.spark.driver.succession import Succession
from braid.hosts.spark.shared.results_source import ResultsReader
from braid.model.statistics import Statistics
from braid.model.stream import Stream
from braid.planning.deployment import Deployment
from braid.planning.relocation import moved
from braid.runtime.migration.change import Answered, Change, Promise, Ready, Stopped, Verdict
from braid.runtime.sites.deployed import Deployed
from tests.hosts.conftest import before_write

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
    say(registry, begun, moment)
    return begun


def say(registry: Registry, begun: Change, moment: int) -> None:
    """Say all that leads to a moment, and that the old plan has answered."""
    facts = [*map(Ready, begun.preparing), Verdict(go=True)]
    facts += [Promise(site, moment) for site in begun.answering] + [Answered(site) for site in begun.answering]
    for fact in facts:
        registry.changes.say(begun, fact)


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


def die(*_: object) -> None:
    raise Died


def test_a_coordinator_that_dies_while_it_removes_a_plan_removes_all_of_it_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    channels = MemoryChannels()
    registry = deployed_over(channels)
    begun = change(registry, "nice", 100)
    coordinate(registry, channels)
    stop(registry, begun)

    with monkeypatch.context() as patch:
        patch.setattr(MemoryChannel, "unsubscribe", die)
        with pytest.raises(Died):
            coordinate(registry, channels)
    assert coordinate(registry, channels) == [2]
    deployed = registry.deployment("pairs")
    subscribers = {name for channel in deployed.published for name in channels.open(channel).released()}
    assert not [name for name in subscribers if "#1" in name]


def at_sink(deployed: Deployed, sink: str) -> Deployment:
    """A plan that joins all streams at a site."""
    known = replace(KNOWN, sites=deployed.origins)
    return braid.plan(deployed.query, known, TRIANGLE, sink=sink, planner="at_sink")


def complete(registry: Registry, channels: MemoryChannels, begun: Change, moment: int) -> list[int]:
    """Let all sites do what a change asks of them; returns the generations that are left."""
    say(registry, begun, moment)
    coordinate(registry, channels)
    stop(registry, begun)
    return coordinate(registry, channels)


def readers(deployed: Deployed, channels: MemoryChannels) -> set[tuple[str, str]]:
    """Who subscribes to the channels of a query, announced or not."""
    return {(name, reader) for name in deployed.published for reader in channels.open(name).released()}


def test_a_program_that_dies_while_it_begins_a_change_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it has written last: either the change is begun with its plan, or nothing runs and nothing is kept."""
    outcomes = []
    for lives in count():
        channels = MemoryChannels()
        registry = deployed_over(channels)
        deployed = registry.deployment("pairs")
        with monkeypatch.context() as patch:
            before_write(patch, lives, die)
            try:
                registry.begin_change("pairs", at_sink(deployed, "nice"), "a test", 0.0)
                is_begun = True
            except Died:
                is_begun = False
        registry = Registry(TRIANGLE, channels)  # another program
        numbers = coordinate(registry, channels)
        state = registry.changes.under_way("pairs")
        assert numbers == ([1] if state is None else [1, 2])
        outcomes.append((is_begun, numbers))
        if state is not None:
            assert complete(registry, channels, state.change, 100) == [2]
        begun = registry.begin_change("pairs", at_sink(deployed, "paris"), "a test", 0.0)
        assert complete(registry, channels, begun, 200) == [begun.new]
        deployed = registry.deployment("pairs")
        assert readers(deployed, channels) == set(deployed.subscriptions())
        assert not channels.announced(DRAFT)
        if is_begun:
            break
    assert {(False, (1,)), (False, (1, 2)), (True, (1, 2))} == {(is_begun, tuple(left)) for is_begun, left in outcomes}


def test_a_change_that_another_program_has_begun_at_the_same_moment_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan that is announced is that of the change, and the other program keeps nothing for its own."""
    channels = MemoryChannels()
    registry = deployed_over(channels)
    deployed = registry.deployment("pairs")

    def meanwhile(*arguments: Any) -> bool:
        """The other program is faster by one write."""
        patch.undo()
        Registry(TRIANGLE, channels).begin_change("pairs", at_sink(deployed, "paris"), "another test", 0.0)
        return registry.changes.begin(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(registry.changes, "begin", meanwhile)
        with pytest.raises(braid.PlanError, match="another program has just begun a plan change of query 'pairs'"):
            registry.begin_change("pairs", at_sink(deployed, "nice"), "a test", 0.0)
    state = registry.changes.under_way("pairs")
    assert state is not None and state.change.preparing == ("paris",)
    deployed = registry.deployment("pairs")
    assert set(deployed.generation(2).sites) == {"paris"}
    assert readers(deployed, channels) == set(deployed.subscriptions())
    assert not channels.announced(DRAFT)


def test_a_drop_that_dies_while_the_plan_changes_can_be_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    for lives in count():
        channels = MemoryChannels()
        registry = deployed_over(channels)
        deployed = registry.deployment("pairs")
        registry.begin_change("pairs", at_sink(deployed, "nice"), "a test", 0.0)
        with monkeypatch.context() as patch:
            before_write(patch, lives, die)
            try:
                registry.withdraw(deployed)
                has_died = False
            except Died:
                has_died = True
        if "pairs" in registry.deployments():
            assert registry.withdraw(deployed) is None
        assert not channels._channels
        assert registry.changes.under_way("pairs") is None
        if not has_died:
            break


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


TRIPLES = """SELECT a.n AS an, b.n AS bn, c.n AS cn FROM a [RANGE 20 SECONDS], b [RANGE 9 SECONDS], c [RANGE 9 SECONDS]
             WHERE a.k = b.k AND b.k = c.k"""


def test_what_a_plan_takes_over_outlives_the_plan_before_and_goes_with_the_last_one_that_has_it() -> None:
    channels = MemoryChannels()
    registry = Registry(TRIANGLE, channels)
    for name, site in {"a": "paris", "b": "paris", "c": "lyon"}.items():
        registry.declare(site, Stream(name, SCHEMA, "ts"))
    known = Statistics(rates={"a": 10, "b": 12, "c": 9}, selectivities={"a.k = b.k": 1e-4, "b.k = c.k": 1e-3}, sites={})
    name = registry.deploy(DeploymentRequest(TRIPLES, "triples", "nice", statistics=known)).unique_name
    joined = f"{name} #1: a+b at paris"

    def change_to(last: str | None, moment: int) -> tuple[Deployed, Change]:
        """Change to the same plan with its last join elsewhere, or to one that joins all streams at the sink."""
        deployed = registry.deployment("triples")
        origins = replace(known, sites=deployed.origins)
        planner = "at_sink" if last is None else "exact"
        plan = braid.plan(deployed.query, origins, TRIANGLE, sink="nice", planner=planner)
        begun = registry.begin_change("triples", moved(plan, "a ⋈ b ⋈ c", last) if last else plan, "a test", 0.0)
        say(registry, begun, moment)
        for _ in range(2):
            Succession("triples", registry, channels).take_part(TRIANGLE.names, {})
        return registry.deployment("triples"), begun

    def end(begun: Change) -> list[int]:
        for site in registry.deployment("triples").ending(begun.old):
            registry.changes.say(begun, Stopped(site))
        for _ in range(2):
            Succession("triples", registry, channels).take_part(TRIANGLE.names, {})
        return [generation.number for generation in registry.deployment("triples").generations]

    deployed, first = change_to("nice", 100)
    assert first.preparing == ("nice",)
    assert "paris" not in deployed.ending(1)
    assert end(first) == [2]
    assert joined in registry.deployment("triples").published
    subscribers = channels.open(joined).released()
    assert set(subscribers) == {f"{name} #2 at nice", f"publisher of {name} #1 at paris"}
    deployed, second = change_to(None, 200)
    assert set(second.preparing) == {"nice"}
    assert "paris" in deployed.ending(2)
    assert end(second) == [3]
    assert joined not in registry.deployment("triples").published
