"""`braid deploy`: what it says of sites that do not run."""

import time
from pathlib import Path

import pyarrow as pa
import yaml

from braid.channels.kinds import open_channels
from braid.files.network import load_network
from braid.hosts.registry import Registry
from braid.model.stream import Stream
from tests.cli.conftest import braid

SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "k": pa.int64()})


def write_network(directory: Path) -> Path:
    """A network whose streams have been announced, as their sites do when they start."""
    stream = {"format": "json", "path": "nowhere", "schema": {"ts": "TIMESTAMP", "k": "BIGINT"}}
    content = {
        "topology": {"links": [["paris", "lyon", 0.004], ["lyon", "nice", 0.006]]},
        "directory": "state",
        "streams": {"a": {"site": "paris", **stream}, "b": {"site": "lyon", **stream}},
        "queries": {
            "pairs": {
                "sql": "SELECT a.k FROM a [RANGE 1 SECOND], b [RANGE 1 SECOND] WHERE a.k = b.k",
                "sink": "nice",
                "output": {"format": "parquet", "path": "results"},
            }
        },
    }
    file = directory / "network.yaml"
    file.write_text(yaml.safe_dump(content))
    for name, site in {"a": "paris", "b": "lyon"}.items():
        registry(file).declare(site, Stream(name, SCHEMA, "ts"))
    return file


def registry(file: Path) -> Registry:
    network = load_network(file)
    return Registry(network.topology, open_channels(network.channels, network.directory))


def silent_sites(message: str) -> list[str]:
    return [line.split()[1] for line in message.splitlines() if "does not run" in line]


def test_sites_that_do_not_run_are_named_and_the_query_is_deployed(tmp_path: Path) -> None:
    file = write_network(tmp_path)
    registry(file).roll_call.answer(["paris"], time.time())
    done = braid("deploy", file, "--wait", 0)
    assert done.exit_code == 0
    assert silent_sites(done.stderr) == ["lyon", "nice"]
    assert f"start it with braid site {file} --name nice" in done.stderr
    assert list(registry(file).deployments()) == ["pairs"]


def test_sites_that_run_are_not_named(tmp_path: Path) -> None:
    file = write_network(tmp_path)
    registry(file).roll_call.answer(["paris", "lyon", "nice"], time.time())
    done = braid("deploy", file, "--wait", 60)
    assert done.exit_code == 0
    assert silent_sites(done.stderr) == []
    assert "pairs" in done.stdout
