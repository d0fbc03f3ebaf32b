"""`braid version` and `braid --version`."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version

import typer

from braid.cli.commands import Json, print_json


def version(as_json: Json = False) -> None:
    """Print the version of Braid; with --json, also those of Python, PySpark and PyArrow."""
    if not as_json:
        typer.echo(installed_version("braid"))
        return
    print_json(
        {name: _installed(name) for name in ("braid", "pyspark", "pyarrow")} | {"python": platform.python_version()}
    )


def print_version(requested: bool) -> None:
    """The option `--version`."""
    if requested:
        version()
        raise typer.Exit


def _installed(name: str) -> str | None:
    try:
        return installed_version(name)
    except PackageNotFoundError:
        return None
