"""One damaged document is told of once, and everything else goes on. What it was about does not count as gone."""

import json
import logging
from dataclasses import replace
from pathlib import Path

import pytest

import braid
from braid.channels.directories import DirectoryChannels
from braid.channels.plain_names import plain_name
from braid.errors import BraidError
from braid.hosts.deployment_request import DeploymentRequest
from braid.hosts.drafts import DRAFT
from braid.hosts.drops import Drops
from braid.hosts.network_status import channel_statuses
from braid.hosts.registry import DROP, STREAM, UNKNOWN, Registry
from braid.hosts.spark.shared.results_source import ResultsReader
from braid.model.stream import Stream
from braid.runtime.sites.deployed import KIND, Deployed
from tests.hosts.conftest import KNOWN, PAIRS, SCHEMA, TRIANGLE, TRIPLES, reuses

GARBAGE = [b"not json", b"{}", json.dumps({"key": "zzz", "document": {"format": 6}}).encode()]
"""What is no JSON, what has no document, and a document that is no deployment, no stream and no plan change."""


@pytest.fixture
def channels(tmp_path: Path) -> DirectoryChannels:
    return DirectoryChannels(tmp_path)


@pytest.fixture
def registry(channels: DirectoryChannels) -> Registry:
    return restarted(channels)


def restarted(channels: DirectoryChannels) -> Registry:
    """The registry of a program that has just started its sites."""
    registry = Registry(TRIANGLE, channels)
    for name, site in {"a": "paris", "b": "lyon", "c": "nice"}.items():
        registry.declare(site, Stream(name, SCHEMA, "ts"))
    return registry


def spoil(directory: Path, kind: str, key: str, data: bytes = b"not json") -> Path:
    path = directory / "announced" / plain_name(kind) / f"{plain_name(key)}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.replace(b'"zzz"', json.dumps(key).encode()))
    return path


def pairs(registry: Registry) -> Deployed:
    return registry.deploy(DeploymentRequest(PAIRS, "pairs", "lyon", statistics=KNOWN, reuse=True))


def triples(registry: Registry) -> Deployed:
    return registry.deploy(DeploymentRequest(TRIPLES, "triples", "nice", statistics=KNOWN, reuse=True))


def change(registry: Registry, sink: str) -> int:
    """Begin to move a query to another site; returns the number of the new generation."""
    deployed = registry.deployment("pairs")
    plan = braid.plan(deployed.query, replace(KNOWN, sites=deployed.origins), TRIANGLE, sink=sink, planner="at_sink")
    return registry.begin_change("pairs", plan, "a test", 0.0).new


@pytest.mark.parametrize("garbage", GARBAGE)
@pytest.mark.parametrize("kind", [KIND, STREAM, DRAFT, "figures", "history", "gain", "results", DROP, "running"])
def test_garbage_in_one_document_changes_nothing_for_others(
    kind: str, garbage: bytes, registry: Registry, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spoil(tmp_path, kind, "zzz", garbage)
    with caplog.at_level(logging.WARNING):
        deployed = pairs(registry)
        for _ in range(3):
            assert registry.deployments() == {"pairs": deployed}
            assert registry.streams().keys() == registry.origins().keys() == {"a", "b", "c"}
            assert registry.plans.statistics(deployed) is None
            assert registry.changes.history("pairs") == []
            assert len(channel_statuses(DirectoryChannels(tmp_path))) > 0
            registry.roll_call.silent(["lyon"], 0.0)
        assert change(registry, "nice") == 2
        assert registry.withdraw(registry.deployment("pairs")) is None
    assert registry.deployments() == {}
    told = [text for text in caplog.messages if "zzz" in text]
    assert len(set(told)) <= 1
    # Those who look at the status are programs of their own.
    assert len(told) <= 1 + 3


@pytest.mark.parametrize("garbage", GARBAGE)
def test_a_query_whose_document_is_damaged_is_not_taken_for_dropped(
    garbage: bytes, channels: DirectoryChannels, registry: Registry, tmp_path: Path
) -> None:
    deployed = pairs(registry)
    path = tmp_path / "announced" / KIND / "pairs.json"
    whole = path.read_bytes()
    spoil(tmp_path, KIND, "pairs", garbage)
    deployments = registry.deployments()
    assert "pairs" not in deployments
    assert not deployments.is_gone(deployed)
    assert deployments.is_gone(replace(deployed, name="other"))
    for ask in (
        lambda: registry.deployment("pairs"),
        lambda: Drops(registry, channels).drop("pairs", wait=0.0),
        lambda: pairs(registry),
    ):
        with pytest.raises(BraidError, match="announces query 'pairs' cannot be read; restore it"):
            ask()
    for channel, subscriber in deployed.subscriptions():
        assert {subscriber, plain_name(subscriber)} & channels.open(channel).released().keys()
    path.write_bytes(whole)
    assert registry.deployments() == {"pairs": deployed}
    path.unlink()
    assert registry.deployments().is_gone(deployed)


def test_a_draft_stays_while_its_deployment_is_damaged(
    channels: DirectoryChannels, registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the channels of the deployment, too: nobody may remove them."""
    deployed = pairs(registry)

    def damaged(*ignored: object) -> bool:
        spoil(tmp_path, KIND, "pairs")
        return False

    monkeypatch.setattr(registry.changes, "begin", damaged)
    with pytest.raises(BraidError, match="another program has just begun a plan change"):
        change(registry, "nice")
    for channel, subscriber in deployed.subscriptions():
        assert plain_name(subscriber) in channels.open(channel).released()


def test_joins_that_a_query_with_a_damaged_document_reads_stay_for_it(
    channels: DirectoryChannels, registry: Registry, tmp_path: Path
) -> None:
    first, second = pairs(registry), triples(registry)
    assert reuses(second)
    whole = (tmp_path / "announced" / KIND / "triples.json").read_bytes()
    path = spoil(tmp_path, KIND, "triples")
    assert registry.users(first) == [UNKNOWN]
    remaining = registry.withdraw(first)
    assert remaining is not None
    assert remaining.is_dropped
    assert Drops(registry, channels).unused() == []
    path.write_bytes(whole)
    assert registry.users(remaining) == ["triples"]
    assert Drops(registry, channels).unused() == []
    for channel, subscriber in second.subscriptions():
        assert plain_name(subscriber) in channels.open(channel).released()


@pytest.mark.parametrize("garbage", GARBAGE)
def test_garbage_in_place_of_a_plan_change_does_not_block_others(
    garbage: bytes, channels: DirectoryChannels, registry: Registry, tmp_path: Path
) -> None:
    pairs(registry)
    spoil(tmp_path, "change", "pairs #2", garbage)
    spoil(tmp_path, "change", "pairs #3", garbage)
    assert change(registry, "nice") == 4
    assert registry.deployment("pairs").newest == 4
    under_way = registry.changes.under_way("pairs")
    assert under_way is not None
    assert under_way.change.new == 4
    assert restarted(channels).deployments() == registry.deployments()


def test_a_copy_of_a_plan_change_is_no_other_one(registry: Registry, tmp_path: Path) -> None:
    pairs(registry)
    change(registry, "nice")
    document = DirectoryChannels(tmp_path).announced("change")["pairs #2"]
    DirectoryChannels(tmp_path).announce("change", "pairs #2 copy", document)
    assert len(list(registry.changes.states("pairs"))) == 1
    assert registry.changes.rejected == 1


def test_no_site_counts_as_stopped_while_what_asks_for_it_is_damaged(
    channels: DirectoryChannels, registry: Registry, tmp_path: Path
) -> None:
    deployed, drops = pairs(registry), Drops(registry, channels)
    drops.ask("pairs")
    spoil(tmp_path, DROP, "pairs")
    assert drops.running(deployed) == sorted(deployed.sites)
    drops.ask("pairs")
    for site in deployed.sites:
        drops.stopped("pairs", site)
    assert drops.running(deployed) == []


def test_a_damaged_pin_holds(registry: Registry, tmp_path: Path) -> None:
    pairs(registry)
    spoil(tmp_path, "pinned", "pairs")
    assert registry.figures.is_pinned("pairs")
    registry.figures.unpin("pairs")
    assert not registry.figures.is_pinned("pairs")


@pytest.mark.parametrize("garbage", GARBAGE[:2])
def test_a_reader_of_results_goes_on_when_it_cannot_read_where_they_are(
    garbage: bytes, channels: DirectoryChannels, registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise it would forget how far it has come, and read what it has read once more."""
    monkeypatch.setattr("braid.hosts.spark.shared.results_source.ASK_SECONDS", 0.0)
    deployed = pairs(registry)
    reader = ResultsReader(channels.to_json(), "pairs", deployed.reader, 1000)
    _, before = reader.read(reader.initialOffset())
    assert list(before) == deployed.results
    spoil(tmp_path, "results", "pairs", garbage)
    assert reader.read(before)[1] == before
    newcomer = ResultsReader(channels.to_json(), "pairs", deployed.reader, 1000)
    with pytest.raises(BraidError, match="where the results of query 'pairs' are is damaged; restore it"):
        newcomer.read(newcomer.initialOffset())
