"""`braid check`: check a job file without running it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from braid.cli.commands import Json, print_json, progress, screen, spark_session
from braid.files.job import load


def check(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A YAML file with streams and queries; see `braid run --help`.")
    ],
    as_json: Json = False,
) -> None:
    """Check a file without running it: its streams, columns, queries, sinks and checkpoints.

    Prints the result columns of every query.
    """
    job = load(file)
    with spark_session(dict(job.spark)) as session, progress.status("checking streams and queries"):
        from braid.hosts.spark.driver.job_runner import open_queries

        opened = open_queries(session, job)
    columns = {
        entry.name: {column.name: column.dataType.simpleString() for column in query.dataframe.schema}
        for entry, query in opened
    }
    if as_json:
        queries = {name: {"columns": types} for name, types in columns.items()}
        print_json({"ok": True, "streams": [entry.name for entry in job.streams], "queries": queries})
        return
    for name, types in columns.items():
        screen.print(f"[bold]{name}[/bold]: {', '.join(f'{column} {kind}' for column, kind in types.items())}")
    stream_count = "1 stream" if len(job.streams) == 1 else f"{len(job.streams)} streams"
    query_count = "1 query" if len(job.queries) == 1 else f"{len(job.queries)} queries"
    screen.print(f"{file} is right: {stream_count}, {query_count}")
