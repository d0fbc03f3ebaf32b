"""`braid replan`: a change that waits for a site that does not run, and the one that takes its place."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

from braid.channels.kinds import open_channels
from braid.files.network import load_network
from braid.hosts.registry import Registry
from braid.model.stream import Stream
from braid.runtime.migration.change import Phase, Promise, Ready, Verdict
from tests.cli.conftest import braid

SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "k": pa.int64()})


def write_network(directory: Path, **query: Any) -> Path:
    """A network with one query, with some keys of its own."""
    stream = {"format": "json", "path": "nowhere", "schema": {"ts": "TIMESTAMP", "k": "BIGINT"}}
    pairs = {"sql": "SELECT a.k FROM a [RANGE 1 SECOND], b [RANGE 1 SECOND] WHERE a.k = b.k", **query}
    content = {
        "topology": {"links": [["paris", "lyon", 0.004], ["lyon", "nice", 0.006]]},
        "directory": "state",
        "streams": {"a": {"site": "paris", **stream}, "b": {"site": "lyon", **stream}},
        "queries": {"pairs": pairs},
    }
    file = directory / "network.yaml"
    file.write_text(yaml.safe_dump(content))
    return file


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    """A network whose query is deployed at lyon."""
    network = load_network(write_network(tmp_path, sink="lyon"))
    opened = Registry(network.topology, open_channels(network.channels, network.directory))
    for name, site in {"a": "paris", "b": "lyon"}.items():
        opened.declare(site, Stream(name, SCHEMA, "ts"))
    assert braid("deploy", tmp_path / "network.yaml", "--wait", 0).exit_code == 0
    return opened


def replan(directory: Path, sink: str) -> str:
    done = braid("replan", write_network(directory, sink=sink), "--no-wait")
    assert done.exit_code == 0, done.stderr
    return done.stdout


def test_a_change_that_waits_for_a_stopped_site_is_replaced_by_another_one(registry: Registry, tmp_path: Path) -> None:
    replan(tmp_path, "nice")
    waiting = registry.changes.under_way("pairs")
    assert waiting is not None
    assert waiting.awaited == ("nice",)
    replan(tmp_path, "paris")
    assert registry.changes.state(waiting.change).verdict == Verdict(False, "another change takes its place")
    second = registry.changes.under_way("pairs")
    assert second is not None
    assert second.awaited == ("paris",)


def test_a_change_that_waits_is_given_up_for_the_plan_that_the_query_has(registry: Registry, tmp_path: Path) -> None:
    replan(tmp_path, "nice")
    assert "pairs keeps its plan" in replan(tmp_path, "lyon")
    assert registry.changes.under_way("pairs") is None


def test_a_change_that_is_agreed_on_does_not_make_way(registry: Registry, tmp_path: Path) -> None:
    replan(tmp_path, "nice")
    waiting = registry.changes.under_way("pairs")
    assert waiting is not None
    for fact in (Ready("nice"), Verdict(go=True), Promise("lyon", 5)):
        registry.changes.say(waiting.change, fact)
    assert not registry.make_way("pairs")
    assert registry.changes.state(waiting.change).phase is Phase.SWITCHING
