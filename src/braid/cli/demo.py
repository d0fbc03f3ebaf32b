"""`braid demo`: the queries of an airline on Spark, with a burst that makes a query change its plan."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import pyarrow as pa
import pyarrow.parquet as pq
import typer
from rich.live import Live

from braid.cli.commands import Json, print_json, progress, screen, spark_session
from braid.cli.demo_view import Summary, View, print_summary
from braid.errors import BraidError, RunError
from braid.hosts.local.run import run
from braid.workloads.airline_day import QUERIES, Airline, Burst

if TYPE_CHECKING:
    from braid.hosts.spark.driver.job_runner import Running
    from braid.hosts.spark.driver.session import Session

MINUTE = 2.0
"""Seconds that one minute of the airline's day takes in the demo."""

SECONDS = 70
"""How long the streams flow by default."""

BURST_START, BURST_SECONDS = 30, 20
LATENESS = "1 minute"


def demo(
    seconds: Annotated[int, typer.Option(min=4, help="How many seconds the streams flow.")] = SECONDS,
    forever: Annotated[bool, typer.Option("--forever", help="Run until Ctrl-C.")] = False,
    local: Annotated[bool, typer.Option("--local", help="Run in this process, without Spark.")] = False,
    as_json: Json = False,
) -> None:
    """Run three queries of an airline on Spark and watch their plans change.

    Five streams flow at the rates of a real airline, thirty times faster than real time. After half a minute, ticket
    sales rise to twenty times their rate for a while, and the screen shows which plans change. At the end, the results
    are compared with those of DuckDB, which joins the whole input at once. The demo removes its files, also after
    Ctrl-C.
    """
    burst_start = min(BURST_START, seconds // 3)
    burst_end = burst_start + BURST_SECONDS
    airline = Airline(burst=Burst("SALES", round(burst_start / MINUTE), round(burst_end / MINUTE), times=20))
    if local:
        _print(_run_local(airline, round(seconds / MINUTE)), as_json)
        return
    with TemporaryDirectory(prefix="braid-demo-") as directory, spark_session() as session:
        _print(_Demo(session, Path(directory), airline).run(None if forever else seconds), as_json)


def _print(summary: Summary | None, as_json: bool) -> None:
    """Print the summary of the demo; it is None if the user stopped the demo."""
    if summary is None:
        progress.print("stopped")
        return
    if as_json:
        print_json(asdict(summary))
    else:
        print_summary(screen, summary)
    if any(outcome.equal is False for outcome in summary.queries):
        raise RunError("the results differ from those of DuckDB; this is a bug in Braid, please report it")


class _Demo:
    """The demo on Spark. Each stream is a directory with one file for every minute of the airline's day."""

    def __init__(self, session: Session, directory: Path, airline: Airline) -> None:
        self._session = session
        self._directory = directory
        self._airline = airline
        self._minutes: list[dict[str, pa.Table]] = []
        self._sent = 0
        self._view = View(airline)

    def run(self, seconds: int | None) -> Summary | None:
        """Run the whole demo. Without a number of seconds it runs until Ctrl-C; the result is None after Ctrl-C."""
        running: list[Running] = []
        try:
            with progress.status("preparing the streams") as status:
                self._send()
                self._declare()
                for number, name in enumerate(QUERIES, 1):
                    status.update(f"starting query {number} of {len(QUERIES)}: {name}")
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

    def _send(self) -> None:
        """Write the next minute of every stream. Spark skips names that begin with a dot and sees only whole files."""
        minute = self._sent
        tables = self._airline.minute(minute)
        for stream, table in tables.items():
            directory = self._stream_directory(stream)
            directory.mkdir(parents=True, exist_ok=True)
            unfinished = directory / f".{minute:06d}"
            pq.write_table(table, unfinished)
            unfinished.rename(directory / f"{minute:06d}.parquet")
        self._minutes.append(tables)
        self._sent += 1

    def _declare(self) -> None:
        spark = self._session.spark
        for stream in self._minutes[0]:
            path = str(self._stream_directory(stream))
            rows = spark.readStream.schema(spark.read.parquet(path).schema).parquet(path)
            self._session.stream(stream, rows, lateness=LATENESS)

    def _stream_directory(self, stream: str) -> Path:
        return self._directory / "streams" / stream

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
                if elapsed >= self._sent * MINUTE:
                    self._send()
                    if seconds is None:  # The results of an endless demo are not compared, so old input can go.
                        del self._minutes[:-1]
                for query in running:
                    query.check()
                self._view.note_changes(elapsed, running)
                live.update(self._view.panel(elapsed, self._sent - 1, self._minutes[-1], running))
                time.sleep(0.1)

    def _summary(self, running: list[Running]) -> Summary:
        streams = _concatenated(self._minutes)
        results = {query.name: self._result(query.name) for query in running}
        summary = Summary.of(streams, results)
        summary.changes.extend(self._view.changes)
        return summary

    def _result(self, name: str) -> pa.Table:
        return pq.ParquetDataset(self._directory / "results" / name).read().drop_columns(["event_time"])


def _run_local(airline: Airline, minutes: int) -> Summary:
    streams = _concatenated([airline.minute(number) for number in range(minutes)])
    with progress.status("joining, and comparing the results with those of DuckDB"):
        results = {name: run(text, streams, batch_rows=1_000, lateness=LATENESS) for name, text in QUERIES.items()}
        return Summary.of(streams, results)


def _concatenated(minutes: list[dict[str, pa.Table]]) -> dict[str, pa.Table]:
    """Each stream as one table."""
    if not minutes:
        raise BraidError("the demo has no input; give a larger number of seconds")
    return {stream: pa.concat_tables([tables[stream] for tables in minutes]) for stream in minutes[0]}
