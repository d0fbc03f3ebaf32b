"""`braid demo`: the queries of an airline on Spark, with a burst that makes a query change its plan."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import pyarrow as pa
import pyarrow.parquet as pq
import typer
from rich.live import Live

from braid.cli.commands import Json, print_json, progress, screen, spark_session
from braid.cli.demo_feed import LATENESS, MINUTE, Feed, concatenated
from braid.cli.demo_sites import SitesDemo
from braid.cli.demo_sites_view import SitesSummary, print_sites_summary
from braid.cli.demo_view import Summary, View, print_summary
from braid.errors import BraidError, RunError
from braid.hosts.local.run import run
from braid.workloads.airline_day import QUERIES, Airline, Burst

if TYPE_CHECKING:
    from braid.hosts.spark.driver.job_runner import Running
    from braid.hosts.spark.driver.session import Session

SECONDS = 70
"""How long the streams flow by default."""

BURST_START, BURST_SECONDS = 30, 20


def demo(
    seconds: Annotated[int, typer.Option(min=4, help="How many seconds the streams flow.")] = SECONDS,
    forever: Annotated[bool, typer.Option("--forever", help="Run until Ctrl-C.")] = False,
    local: Annotated[bool, typer.Option("--local", help="Run in this process, without Spark.")] = False,
    sites: Annotated[bool, typer.Option("--sites", help="Run at five sites, and watch their links.")] = False,
    as_json: Json = False,
) -> None:
    """Run three queries of an airline on Spark and watch their plans change.

    Five streams flow at the rates of a real airline, thirty times faster than real time. After half a minute, ticket
    sales rise to twenty times their rate for a while, and the screen shows which plans change. At the end, the results
    are compared with those of DuckDB, which joins the whole input at once. The demo removes its files, also after
    Ctrl-C.

    With `--sites` each stream starts at a site of its own, and the queries are deployed over the five sites. The screen
    shows what crosses each link, and the end compares it with shipping everything to where the results are wanted.
    """
    if sites and local:
        raise BraidError("the demo at five sites needs Spark; leave out --sites or --local")
    burst_start = min(BURST_START, seconds // 3)
    burst_end = burst_start + BURST_SECONDS
    airline = Airline(burst=Burst("SALES", round(burst_start / MINUTE), round(burst_end / MINUTE), times=20))
    if local:
        _print(_run_local(airline, round(seconds / MINUTE)), as_json)
        return
    with _scratch_directory() as directory, spark_session() as session:
        demo_class = SitesDemo if sites else _Demo
        _print(demo_class(session, directory, airline).run(None if forever else seconds), as_json)


@contextmanager
def _scratch_directory() -> Iterator[Path]:
    """A directory that is removed at the end.

    Spark writes snapshots of state in the background, also a moment after the last query has stopped. A file that
    comes while the directory is removed would be left behind, so it is removed once more.
    """
    with TemporaryDirectory(prefix="braid-demo-", ignore_cleanup_errors=True) as directory:
        yield Path(directory)
    rmtree(directory, ignore_errors=True)


def _print(summary: Summary | SitesSummary | None, as_json: bool) -> None:
    """Print the summary of the demo; it is None if the user stopped the demo."""
    if summary is None:
        progress.print("stopped")
        return
    if as_json:
        print_json(asdict(summary))
    elif isinstance(summary, SitesSummary):
        print_sites_summary(screen, summary)
    else:
        print_summary(screen, summary)
    if any(outcome.equal is False for outcome in summary.queries):
        raise RunError("the results differ from those of DuckDB; this is a bug in Braid, please report it")


class _Demo:
    """The demo on Spark, at one site."""

    def __init__(self, session: Session, directory: Path, airline: Airline) -> None:
        self._session = session
        self._directory = directory
        self._feed = Feed(directory / "streams", airline)
        self._view = View(airline)

    def run(self, seconds: int | None) -> Summary | None:
        """Run the whole demo. Without a number of seconds it runs until Ctrl-C; the result is None after Ctrl-C."""
        running: list[Running] = []
        try:
            with progress.status("preparing the streams") as status:
                self._feed.send()
                self._declare()
                for position, name in enumerate(QUERIES, 1):
                    status.update(f"starting query {position} of {len(QUERIES)}: {name}")
                    query = self._start(name)
                    running.append(query)
                    self._wait_for_first_batch(query)
            begin = time.monotonic()
            self._flow(begin, running, seconds)
            with progress.status("processing the last rows, and comparing the results with those of DuckDB"):
                for query in running:
                    query.handle.processAllAvailable()
                    query.check()
                self._view.note_changes(time.monotonic() - begin, running)
                return self._summary(running)
        except KeyboardInterrupt:
            return None
        finally:
            for query in running:
                query.stop()

    def _declare(self) -> None:
        for stream, rows in self._feed.dataframes(self._session.spark):
            self._session.stream(stream, rows, lateness=LATENESS)

    def _start(self, name: str) -> Running:
        from braid.hosts.spark.driver.job_runner import Running

        query = self._session.sql(QUERIES[name])
        writer = query.dataframe.writeStream.format("parquet").option("path", str(self._directory / "results" / name))
        writer = writer.option("checkpointLocation", str(self._directory / "checkpoints" / name))
        return Running(name, query, writer.start())

    def _wait_for_first_batch(self, query: Running) -> None:
        """The first micro-batch starts the Python workers; starting the queries one after the other is faster."""
        while query.query.progress() is None:
            query.check()
            time.sleep(0.1)

    def _flow(self, begin: float, running: list[Running], seconds: int | None) -> None:
        """Let the streams flow and show the screen, for the given seconds or until Ctrl-C."""
        with Live(console=progress, refresh_per_second=4, transient=True) as live:
            while seconds is None or time.monotonic() - begin < seconds:
                elapsed = time.monotonic() - begin
                # The results of an endless demo are not compared, so old input can go.
                self._feed.keep_up(elapsed, forget=seconds is None)
                for query in running:
                    query.check()
                self._view.note_changes(elapsed, running)
                live.update(self._view.panel(elapsed, self._feed.sent - 1, self._feed.minutes[-1], running))
                time.sleep(0.1)

    def _summary(self, running: list[Running]) -> Summary:
        results = {query.name: self._result(query.name) for query in running}
        summary = Summary.of(self._feed.tables(), results)
        summary.changes.extend(self._view.changes)
        return summary

    def _result(self, name: str) -> pa.Table:
        return pq.ParquetDataset(self._directory / "results" / name).read().drop_columns(["event_time"])


def _run_local(airline: Airline, minutes: int) -> Summary:
    streams = concatenated([airline.minute(minute) for minute in range(minutes)])
    with progress.status("joining, and comparing the results with those of DuckDB"):
        results = {name: run(text, streams, batch_rows=1_000, lateness=LATENESS) for name, text in QUERIES.items()}
        return Summary.of(streams, results)
