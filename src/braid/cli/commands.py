"""What all commands share: errors as one paragraph, exit codes, `--debug`, and output for machines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from inspect import cleandoc
from pathlib import Path
from tempfile import TemporaryDirectory
from traceback import format_exception
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
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

FAILED, WRONG_INPUT = 1, 2
WRONG = (FileError, ModelError, PlanError, PlanningError, QueryError, StreamError, TopologyError)
"""Errors in what was given; all others are failures on the way."""

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]

debugging: ContextVar[bool] = ContextVar("debugging", default=False)
screen = Console(highlight=False)
progress = Console(stderr=True, highlight=False)
"""What is no result goes to standard error, so that results can be piped."""


class Commands(TyperGroup):
    """The commands: an error of ours is told in one paragraph and by the exit code, without a traceback."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """`--debug` may stand anywhere."""
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
            raise typer.Exit(WRONG_INPUT if isinstance(error, WRONG) else FAILED) from error


def prose(text: str | None) -> str:
    """A docstring as help shows it: paragraphs without the line breaks of the source, but those marked by \\b."""
    paragraphs = cleandoc(text or "").split("\n\n")
    return "\n\n".join(part if part.startswith("\b") else part.replace("\n", " ") for part in paragraphs)


def print_json(content: object) -> None:
    typer.echo(json.dumps(content, default=str))


@contextmanager
def spark_session(settings: dict[str, str] | None = None) -> Iterator[Session]:
    """A session whose Spark keeps quiet; what it logged is kept if something fails."""
    try:
        from braid.hosts.spark.driver.failures import SPARK_FAILURES, told
        from braid.hosts.spark.driver.job_runner import open_session
    except ImportError as problem:
        raise BraidError(f"this needs Spark: pip install 'braid[spark]' ({problem})") from problem
    with TemporaryDirectory(prefix="braid-log-") as directory:
        log = None if debugging.get() else Path(directory) / "spark.log"
        try:
            with progress.status("starting Spark"), starting_spark():
                session = open_session(settings or {}, log)
            yield session
        except (RunError, *SPARK_FAILURES) as failure:
            what = str(failure) if isinstance(failure, RunError) else f"Spark failed: {told(failure)}"
            if log is not None and log.exists():
                kept = Path(directory).with_suffix(".log")
                log.rename(kept)
                what = f"{what}\nWhat Spark logged is in {kept}"
            raise RunError(what) from failure
