"""The command `braid`: one module for each command, put together here.

`commands` holds what all commands share: error messages, exit codes, `--debug`, `--json` and the Spark session. `run`
shows how a command uses it. `stopping` handles Ctrl-C and SIGTERM. `demo_view` draws the screen of `demo`, `programs`
writes site programs as JSON for `plan`, and `query_argument` reads the query given to `explain` and `plan`.
"""

from __future__ import annotations

import typer

from braid.cli.commands import Commands, help_text
from braid.cli.version import print_version

HELP = """Join streams continuously on Spark, with plans that change while the queries run.

Start with `braid demo`. To run your own queries, describe streams, queries and sinks in a file (see `braid run
--help`), check it with `braid check FILE` and run it with `braid run FILE`."""

app = typer.Typer(
    cls=Commands, no_args_is_help=True, add_completion=False, help=help_text(HELP), pretty_exceptions_enable=False
)


@app.callback(help=help_text(HELP))
def main(
    debug: bool = typer.Option(False, "--debug", help="Show tracebacks of errors, and Spark's log."),
    show_version: bool = typer.Option(
        False, "--version", callback=print_version, is_eager=True, help="Print the version of Braid and exit."
    ),
) -> None:
    """Options that stand before the command; `Commands` and `print_version` handle them."""
