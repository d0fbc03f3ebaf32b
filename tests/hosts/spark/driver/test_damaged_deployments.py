"""A site does not give up a query whose document is damaged, and removes nothing of it."""

import logging
import time
from pathlib import Path
from unittest.mock import Mock

import pytest

from braid.channels.directories import DirectoryChannels
from braid.errors import BraidError
from braid.files.network import load_network
from braid.hosts.deployment_request import DeploymentRequest
from braid.hosts.registry import DROP
from braid.hosts.spark.driver import query_watch
from braid.hosts.spark.driver.checkpoint_removal import LEFT, begin_checkpoint
from braid.hosts.spark.driver.query_watch import QueryWatch
from braid.hosts.spark.driver.site_part import checkpoints_of
from braid.hosts.spark.driver.site_process import SiteProcess
from braid.model.stream import Stream
from braid.runtime.sites.deployed import KIND, Deployed
from tests.hosts.conftest import KNOWN, PAIRS, SCHEMA

FILE = """
topology: {links: [[paris, lyon, 0.004], [lyon, nice, 0.006]]}
directory: state
streams: {}
queries:
  pairs:
    sql: SELECT 1
    sink: nice
    output: {format: parquet, path: results}
"""


@pytest.fixture
def process(tmp_path: Path) -> SiteProcess:
    (tmp_path / "network.yaml").write_text(FILE)
    return SiteProcess(load_network(tmp_path / "network.yaml"), "nice", Mock())


@pytest.fixture
def deployed(process: SiteProcess) -> Deployed:
    """A query that runs at the site, which writes its results, with the checkpoints of both."""
    registry = process.network.registry
    for name, site in {"a": "paris", "b": "lyon"}.items():
        registry.declare(site, Stream(name, SCHEMA, "ts"))
    request = DeploymentRequest(PAIRS, "pairs", "nice", statistics=KNOWN, planner="at_sink")
    deployed = registry.deploy(request)
    for checkpoint in checkpoints(process, deployed):
        checkpoint.mkdir(parents=True)
    query = Mock(deployed=deployed)
    query.name = "pairs"
    process.network._queries["pairs"] = query
    return deployed


def checkpoints(process: SiteProcess, deployed: Deployed) -> list[Path]:
    joins = [spec for spec in deployed.specs if spec.site == "nice"]
    return [
        process._results(deployed),
        *(checkpoint for spec in joins for checkpoint in checkpoints_of(spec, process.network._settings)),
    ]


def document(process: SiteProcess) -> Path:
    return process._file.directory / "announced" / KIND / "pairs.json"


@pytest.mark.parametrize("garbage", ["not json", "{}", '{"key": "pairs", "document": {"format": 6}}'])
def test_a_query_whose_document_is_damaged_goes_on_at_a_site(
    garbage: str, process: SiteProcess, deployed: Deployed
) -> None:
    query = process.network.query("pairs")
    document(process).write_text(garbage)
    for _ in range(3):
        assert process.look() == []
    assert process.network.queries == (query,)
    assert not query.stop.called
    for checkpoint in checkpoints(process, deployed):
        assert checkpoint.is_dir() and not (checkpoint / LEFT).exists()


def test_no_checkpoint_is_removed_while_a_document_is_damaged(process: SiteProcess, deployed: Deployed) -> None:
    """A site was killed in the middle of a drop: what it has marked may belong to what goes on for others."""
    for checkpoint in checkpoints(process, deployed):
        (checkpoint / LEFT).touch()
    whole = document(process).read_bytes()
    document(process).write_text("not json")
    process.look()
    assert all(checkpoint.is_dir() for checkpoint in checkpoints(process, deployed))
    document(process).write_bytes(whole)
    process.look()
    assert all(checkpoint.is_dir() for checkpoint in checkpoints(process, deployed))
    document(process).unlink()
    process.look()
    assert not any(checkpoint.is_dir() for checkpoint in checkpoints(process, deployed))
    for checkpoint in checkpoints(process, deployed):
        begin_checkpoint(checkpoint)  # Ends the looks at it.


def test_a_query_whose_document_is_damaged_can_be_dropped(process: SiteProcess, deployed: Deployed) -> None:
    document(process).write_text("not json")
    process.network.drops.ask("pairs")
    process.look()
    assert process.network.queries == ()
    assert process.network.drops.running(deployed) == sorted(deployed.sites - {"nice"})
    assert DROP in {path.name for path in (process._file.directory / "announced").iterdir()}


def test_garbage_stops_no_site(process: SiteProcess, deployed: Deployed, caplog: pytest.LogCaptureFixture) -> None:
    (document(process).parent / "zzz.json").write_text("not json")
    for _ in range(3):
        assert process.look() == []
    assert isinstance(process.network.channels, DirectoryChannels)
    assert len([text for text in caplog.messages if "zzz.json is damaged" in text]) == 1
    assert process.network.channels.damaged_documents == 1


def test_a_query_that_cannot_be_looked_after_is_told_of_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Once for as long as it lasts, and again when it comes back."""
    monkeypatch.setattr(query_watch, "LOOK_SECONDS", 0.005)
    outcomes = iter([BraidError("damaged")] * 3 + [None] + [BraidError("damaged")] * 3 + [BraidError("away")])
    query = Mock()
    query.name = "pairs"
    query.look.side_effect = lambda: _raise(next(outcomes, None))
    watch = QueryWatch(lambda: [query])
    with caplog.at_level(logging.WARNING):
        watch.start()
        while query.look.call_count < 9:
            time.sleep(0.005)
        watch.stop()
    text = "cannot look after query 'pairs': "
    assert caplog.messages == [f"{text}damaged", f"{text}damaged", f"{text}away"]


def _raise(failure: BraidError | None) -> None:
    if failure is not None:
        raise failure
