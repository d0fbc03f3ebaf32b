"""Helpers for tests of commands: run a command, and write a job file or a network file."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml
from typer.testing import CliRunner

from braid.channels.kinds import open_channels
from braid.cli import app
from braid.files.network import load_network
from braid.hosts.registry import Registry
from braid.model.stream import Stream
from braid.testing.stream_files import THREE_WAY_JOIN

Content = dict[str, Any]

SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "k": pa.int64()})


def braid(*arguments: object) -> Any:
    """The result of a `braid` command, run in this process."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def job(**changes: Any) -> Content:
    """The content of a job file that joins the streams `a`, `b` and `c`, with other values for some of its keys."""
    stream = {
        "format": "parquet",
        "schema": {"ts": "TIMESTAMP", "k": "BIGINT", "n": "BIGINT", "t": "STRING"},
        "lateness": "1 second",
        "options": {"maxFilesPerTrigger": 1},
    }
    query = {"sql": THREE_WAY_JOIN, "sink": {"format": "parquet", "path": "result"}, "checkpoint": "state"}
    content: Content = {
        "streams": {name: {**stream, "path": f"streams/{name}"} for name in "abc"},
        "queries": {"three": query},
        "trigger": "available now",
    }
    return content | changes


def write_job(directory: Path, content: object) -> str:
    """The path of a job file with this content: text, or anything that YAML can write."""
    file = directory / "job.yaml"
    file.write_text(content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False))
    return str(file)


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
