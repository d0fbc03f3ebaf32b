"""What all commands share: error messages, exit codes, `--debug`, `--json` and the Spark session."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from inspect import cleandoc
from pathlib import Path
from tempfile import TemporaryDirectory
from traceback import format_exception
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from typer.core import TyperGroup

from braid.cli.stopping import starting_spark, stoppable
from braid.errors import (
    BraidError,
    FileError,
    ModelError,
    PlanError,
    PlanningError,
    QueryError,
    RunError,
    StreamError,
    TopologyError,
)

if TYPE_CHECKING:
    from braid.hosts.spark.driver.session import Session

NAMES = (
    "demo",
    "run",
    "check",
    "explain",
    "plan",
    "simulate",
    "network",
    "site",
    "deploy",
    "replan",
    "drop",
    "state",
    "rescale",
    "prepare",
    "bench",
    "experiments",
    "version",
)
"""The commands, in the order of `braid --help`. Each is a function in the module of its name."""

FAILED, WRONG_INPUT = 1, 2
"""Exit codes."""

INPUT_ERRORS = (FileError, ModelError, PlanError, PlanningError, QueryError, StreamError, TopologyError)
"""Errors in what the user gave; all others are failures while running."""

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]

debugging: ContextVar[bool] = ContextVar("debugging", default=False)
"""Whether `--debug` was given."""

WIDEST_TABLE = 10_000
"""Characters that a line of a table may have if it is piped."""

screen = Console(highlight=False)
"""Standard output, for results only, so that they can be piped."""

progress = Console(stderr=True, highlight=False)
"""Standard error, for everything that is not a result."""


class CommandsByName(Mapping[str, Any]):
    """The commands. The module of each is loaded when the command is looked up, because most load a lot."""

    def __getitem__(self, name: str) -> Any:
        if name not in NAMES:
            raise KeyError(name)
        return _command(name)

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)


@cache
def _command(name: str) -> Any:
    """The command that the function of this name in the module of this name makes."""
    function = getattr(import_module(f"braid.cli.{name}"), name)
    alone = typer.Typer(add_completion=False)
    alone.command(name, help=help_text(function.__doc__))(function)
    return typer.main.get_command(alone)


class Commands(TyperGroup):
    """The group of commands. It prints a Braid error as one paragraph without a traceback and sets the exit code."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = CommandsByName()  # type: ignore[assignment]

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Accept `--debug` before and after the name of the command."""
        if "--debug" in args:
            args = ["--debug", *(argument for argument in args if argument != "--debug")]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        debugging.set(bool(ctx.params.get("debug")))
        try:
            with stoppable():
                return super().invoke(ctx)
        except BraidError as error:
            if debugging.get():
                typer.echo("".join(format_exception(error)), err=True, nl=False)
            else:
                typer.echo(f"braid: {error}", err=True)
            raise typer.Exit(WRONG_INPUT if isinstance(error, INPUT_ERRORS) else FAILED) from error


def help_text(docstring: str | None) -> str:
    """A docstring for `--help`: each paragraph on one line, but paragraphs that begin with \\b stay as they are."""
    paragraphs = cleandoc(docstring or "").split("\n\n")
    return "\n\n".join(text if text.startswith("\b") else text.replace("\n", " ") for text in paragraphs)


def print_json(content: object) -> None:
    typer.echo(json.dumps(content, default=str))


def print_table(table: Table) -> None:
    """Print a table, as wide as the terminal; if it is piped, as wide as its content."""
    (screen if screen.is_terminal else Console(highlight=False, width=WIDEST_TABLE)).print(table)


@contextmanager
def spark_session(settings: dict[str, str] | None = None) -> Iterator[Session]:
    """A session whose Spark logs to a file, as `spark_log` says."""
    with spark_log() as log:
        from braid.hosts.spark.driver.job_runner import open_session

        with progress.status("starting Spark"), starting_spark():
            session = open_session(settings or {}, log)
        yield session


@contextmanager
def spark_log() -> Iterator[Path | None]:
    """The file for Spark's log. It is kept only after a failure of Spark; with `--debug` there is none."""
    try:
        from braid.hosts.spark.driver.failures import SPARK_FAILURES, failure_text
    except ImportError as error:
        raise BraidError(f"this needs Spark: pip install 'braid[spark]' ({error})") from error
    with TemporaryDirectory(prefix="braid-log-") as directory:
        log = None if debugging.get() else Path(directory) / "spark.log"
        try:
            yield log
        except (RunError, *SPARK_FAILURES) as failure:
            message = str(failure) if isinstance(failure, RunError) else f"Spark failed: {failure_text(failure)}"
            if log is not None and log.exists():
                # Beside the temporary directory, which is about to be removed.
                kept_log = Path(directory).with_suffix(".log")
                log.rename(kept_log)
                message = f"{message}\nSpark's log is in {kept_log}"
            raise RunError(message) from failure
