"""The `braid` command."""

from __future__ import annotations

from importlib.metadata import version as installed_version

import typer
from rich.console import Console

from braid.cli.demo import show_demo
from braid.cli.experiments import experiments

app = typer.Typer(no_args_is_help=True, add_completion=False, help=__doc__, pretty_exceptions_enable=False)
app.command()(experiments)


@app.command()
def demo() -> None:
    """Run an airline's three-way join in this process and show its plan and its results."""
    show_demo(Console())


@app.command()
def version() -> None:
    """Print the version of Braid."""
    print(installed_version("braid"))
