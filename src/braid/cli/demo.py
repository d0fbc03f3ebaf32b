"""`braid demo`: an airline's operations on Spark, with a burst that makes a query change its plan."""

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
"""Seconds that a minute of the airline's day takes."""

SECONDS, BURST_FROM, BURST_FOR = 70, 30, 20
LATENESS = "1 minute"


def demo(
    seconds: Annotated[int, typer.Option(min=4, help="How long the streams flow.")] = SECONDS,
    forever: Annotated[bool, typer.Option("--forever", help="Go on until Ctrl-C.")] = False,
    local: Annotated[bool, typer.Option("--local", help="In this process, without Spark.")] = False,
    as_json: Json = False,
) -> None:
    """Three queries of an airline at once, on Spark: gate agent, terminal displays, monitoring.

    Five streams flow at a real airline's rates, thirty times as fast as life. Half a minute in, tickets sell twenty
    times as fast for a while; changes of plan are shown. In the end, the results are compared with those of DuckDB,
    which joins the whole input at once. Nothing is left behind, also after Ctrl-C.
    """
    begin = min(BURST_FROM, seconds // 3)
    burst = Burst("SALES", round(begin / MINUTE), round((begin + BURST_FOR) / MINUTE), times=20)
    airline = Airline(burst=burst)
    if local:
        _tell(_run_here(airline, round(seconds / MINUTE)), as_json)
        return
    with TemporaryDirectory(prefix="braid-demo-") as directory, spark_session() as session:
        _tell(_Demo(session, Path(directory), airline).run(None if forever else seconds), as_json)


def _tell(summary: Summary | None, as_json: bool) -> None:
    """The end of the demo; None if somebody has stopped it."""
    if summary is None:
        progress.print("stopped")
        return
    if as_json:
        print_json(asdict(summary))
    else:
        print_summary(screen, summary)
    if not all(outcome.equal is not False for outcome in summary.queries):
        raise RunError("the results are not those of the oracle: this is a fault in Braid; please report it")


class _Demo:
    """Streams are directories of files: one file of each stream for every minute of the day."""

    def __init__(self, session: Session, directory: Path, airline: Airline) -> None:
        self._session = session
        self._directory = directory
        self._airline = airline
        self._minutes: list[dict[str, pa.Table]] = []
        self._sent = 0
        self._view = View(airline)

    def run(self, seconds: int | None) -> Summary | None:
        """The whole demo; None if somebody stops it, as is the only end without a number of seconds."""
        running: list[Running] = []
        try:
            with progress.status("preparing the streams") as status:
                self._send()
                self._declare()
                for number, name in enumerate(QUERIES, 1):
                    status.update(f"starting query {number} of {len(QUERIES)}: {name}")
                    running.append(self._start(name))
                    self._wait_for_first(running[-1])
            begin = time.monotonic()
            self._flow(begin, running, seconds)
            with progress.status("taking in the last rows, and asking DuckDB for the same results"):
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
        """The next minute of every stream. A file appears whole or not at all."""
        number = self._sent
        tables = self._airline.minute(number)
        for stream, table in tables.items():
            place = self._directory / "streams" / stream
            place.mkdir(parents=True, exist_ok=True)
            unfinished = place / f".{number:06d}"
            pq.write_table(table, unfinished)
            unfinished.rename(place / f"{number:06d}.parquet")
        self._minutes.append(tables)
        self._sent += 1

    def _declare(self) -> None:
        spark = self._session.spark
        for stream in self._minutes[0]:
            place = str(self._directory / "streams" / stream)
            rows = spark.readStream.schema(spark.read.parquet(place).schema).parquet(place)
            self._session.stream(stream, rows, lateness=LATENESS)

    def _start(self, name: str) -> Running:
        from braid.hosts.spark.driver.job_runner import Running

        query = self._session.sql(QUERIES[name])
        writer = query.dataframe.writeStream.format("parquet").option("path", str(self._directory / "results" / name))
        writer = writer.option("checkpointLocation", str(self._directory / "checkpoints" / name))
        return Running(name, query, writer.start())

    def _wait_for_first(self, query: Running) -> None:
        """The first micro-batch takes longest, because Python workers start; one query after the other is quicker."""
        while query.query.progress() is None:
            query.check()
            time.sleep(0.1)

    def _flow(self, begin: float, running: list[Running], seconds: int | None) -> None:
        with Live(console=progress, refresh_per_second=4, transient=True) as live:
            while seconds is None or time.monotonic() - begin < seconds:
                passed = time.monotonic() - begin
                if passed >= self._sent * MINUTE:
                    self._send()
                    if seconds is None:  # Nobody will compare the results with what came in long ago.
                        del self._minutes[:-1]
                for query in running:
                    query.check()
                self._view.note_changes(passed, running)
                live.update(self._view.shown(passed, self._sent - 1, self._minutes[-1], running))
                time.sleep(0.1)

    def _summary(self, running: list[Running]) -> Summary:
        streams = _whole(self._minutes)
        results = {query.name: self._result(query.name) for query in running}
        summary = Summary.of(streams, results)
        summary.changes.extend(self._view.changes)
        return summary

    def _result(self, name: str) -> pa.Table:
        return pq.ParquetDataset(self._directory / "results" / name).read().drop_columns(["event_time"])


def _run_here(airline: Airline, minutes: int) -> Summary:
    streams = _whole([airline.minute(number) for number in range(minutes)])
    with progress.status("joining, and asking DuckDB for the same results"):
        results = {name: run(text, streams, batch_rows=1_000, lateness=LATENESS) for name, text in QUERIES.items()}
        return Summary.of(streams, results)


def _whole(minutes: list[dict[str, pa.Table]]) -> dict[str, pa.Table]:
    if not minutes:
        raise BraidError("there is no minute of input")
    return {stream: pa.concat_tables([tables[stream] for tables in minutes]) for stream in minutes[0]}
