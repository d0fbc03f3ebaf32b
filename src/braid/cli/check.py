"""`braid check`: is a file right?"""

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
    """Find out whether a file would run, without running it: sources, columns, queries, places to write to."""
    job = load(file)
    with spark_session(dict(job.spark)) as session, progress.status("looking at streams and queries"):
        from braid.hosts.spark.driver.job_runner import open_queries

        opened = open_queries(session, job)
    if as_json:
        print_json(
            {
                "ok": True,
                "streams": [entry.name for entry in job.streams],
                "queries": {
                    entry.name: {
                        "columns": {field.name: field.dataType.simpleString() for field in query.dataframe.schema}
                    }
                    for entry, query in opened
                },
            }
        )
        return
    for entry, query in opened:
        columns = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in query.dataframe.schema)
        screen.print(f"[bold]{entry.name}[/bold]: {columns}")
    streams = "1 stream" if len(job.streams) == 1 else f"{len(job.streams)} streams"
    queries = "1 query" if len(job.queries) == 1 else f"{len(job.queries)} queries"
    screen.print(f"{file} is right: {streams}, {queries}")
