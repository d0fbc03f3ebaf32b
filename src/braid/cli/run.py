"""`braid run`: run the queries of a job file on Spark."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.live import Live
from rich.table import Table

from braid.cli.commands import Json, print_json, progress, screen, spark_session
from braid.files.job import load

if TYPE_CHECKING:
    from braid.hosts.spark.driver.job_runner import Running

POLL_SECONDS = 0.2
"""Seconds between two polls of the running queries."""


def run(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A YAML file with streams, queries, sinks and checkpoints.")
    ],
    as_json: Json = False,
) -> None:
    """Run the queries of a file on Spark until their streams end or you press Ctrl-C.

    The file names streams (any streaming source of Spark, with its options and schema), queries over them, and a sink
    and a checkpoint for each query. Paths are relative to the file. A run that was stopped or killed continues from its
    checkpoints when you start it again.

    Optional keys and their defaults. Streams: `time` (ts), `lateness` (0 seconds), `options` (none). Queries: `plan`
    (the order of the text), `shards` (one per core), `idle_timeout` (none). File: `trigger` (run until Ctrl-C), `spark`
    (no settings).

    \b
    streams:
      flights:
        format: json
        path: data/flights
        schema: {ts: TIMESTAMP, num: INT, gate: STRING}
        time: ts
        lateness: 5 seconds
      bags:
        format: json
        path: data/bags
        schema: {ts: TIMESTAMP, flight: INT, status: STRING}
    queries:
      gates:
        sql: |
          SELECT f.gate, b.status
          FROM flights [RANGE 5 MINUTES] f, bags [RANGE 1 MINUTE] b
          WHERE f.num = b.flight
        sink: {format: parquet, path: results/gates}
        checkpoint: state/gates
    trigger: available now
    """
    job = load(file)
    with spark_session(dict(job.spark)) as session:
        from braid.hosts.spark.driver.job_runner import open_queries, rescale_checkpoints, start

        with progress.status("checking streams and queries"):
            opened = open_queries(session, job)
        rescale_checkpoints(session.spark, opened, lambda text: progress.print(text, markup=False, soft_wrap=True))
        with progress.status("starting queries"):
            running = start(job, opened)
        try:
            _watch(running, as_json)
        except KeyboardInterrupt:
            progress.print("stopping; the next run continues from here")
        finally:
            for query in running:
                query.stop()
            for query in running:
                query.wait_for_reports()
            _print_reports(running, as_json)
        _print_totals(running, as_json)


def _watch(running: list[Running], as_json: bool) -> None:
    """Show the progress of the queries until all have ended or one has failed."""
    with Live(_table(running), console=progress, transient=True, refresh_per_second=4) as live:
        while any(query.active for query in running):
            for query in running:
                query.check()
            _print_reports(running, as_json)
            live.update(_table(running))
            time.sleep(POLL_SECONDS)
    for query in running:
        query.check()


def _print_reports(running: list[Running], as_json: bool) -> None:
    """With --json, print the reports of the micro-batches since the last call. Without it, the table shows progress."""
    if not as_json:
        return
    for query in running:
        for report in query.query.take_news():
            print_json({"query": query.name, **report})


def _table(running: list[Running]) -> Table:
    table = Table("query", "batch", "rows in", "results", "rows kept", "bytes kept")
    for query in running:
        report = query.query.progress()
        if report is None:
            table.add_row(query.name, "waiting for input", "", "", "", "")
            continue
        figures = (
            report["batch"],
            report["total"]["rows_in"],
            report["total"]["rows_out"],
            report["state_rows"],
            report["state_bytes"],
        )
        table.add_row(query.name, *(f"{figure:,}" for figure in figures))
    return table


def _print_totals(running: list[Running], as_json: bool) -> None:
    totals = {query.name: query.totals() for query in running}
    if as_json:
        print_json({"ended": totals})
        return
    for name, total in totals.items():
        parts = [f"{total['rows_in']:,} rows in", f"{total['rows_out']:,} results"]
        for reason in ("late", "untimed"):
            dropped = sum(total[reason].values())
            parts += [f"{dropped:,} {reason} rows dropped"] if dropped else []
        if total["waiting"]:
            parts.append(f"{total['waiting']:,} waiting for a watermark")
        screen.print(f"[bold]{name}[/bold]: {', '.join(parts)}")
