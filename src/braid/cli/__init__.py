"""Continuous multi-way window joins over streams, on Spark.

Start with `braid demo`. To run queries of your own, write a file with streams, queries and sinks, look at it with
`braid check FILE`, and run it with `braid run FILE`.
"""

from __future__ import annotations

import typer

from braid.cli.bench import bench
from braid.cli.check import check
from braid.cli.commands import Commands, prose
from braid.cli.demo import demo
from braid.cli.experiments import experiments
from braid.cli.explain import explain
from braid.cli.plan import plan
from braid.cli.run import run
from braid.cli.state import state
from braid.cli.version import tell_version, version

app = typer.Typer(
    cls=Commands, no_args_is_help=True, add_completion=False, help=prose(__doc__), pretty_exceptions_enable=False
)
for command in (demo, run, check, explain, plan, state, bench, experiments, version):
    app.command(help=prose(command.__doc__))(command)


@app.callback()
def main(
    debug: bool = typer.Option(False, "--debug", help="Show the traceback of an error and what Spark logs."),
    show_version: bool = typer.Option(
        False, "--version", callback=tell_version, is_eager=True, help="Print the version of Braid."
    ),
) -> None:
    """The docstring of the module is what `braid --help` shows."""


main.__doc__ = prose(__doc__)
