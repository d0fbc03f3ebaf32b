"""Helpers for tests of commands: run a command, and write a job file."""

from pathlib import Path
from typing import Any

import yaml
from typer.testing import CliRunner

from braid.cli import app
from braid.testing.stream_files import THREE_WAY_JOIN

Content = dict[str, Any]


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
