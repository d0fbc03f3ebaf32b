"""`braid demo --sites`: the queries of an airline, deployed over five sites that share one Spark."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from rich.live import Live

from braid.cli.commands import progress
from braid.cli.demo_feed import LATENESS, Feed
from braid.cli.demo_sites_view import Shipped, SitesSummary, SitesView
from braid.cli.demo_view import Summary
from braid.hosts.network_status import statuses_of
from braid.hosts.simulated.simulate import simulate
from braid.workloads.airline import airline_statistics
from braid.workloads.airline_day import QUERIES, Airline
from braid.workloads.airline_sites import SINKS, SITES, airline_network

if TYPE_CHECKING:
    from braid.hosts.spark.driver.deployed_query import DeployedQuery
    from braid.hosts.spark.driver.session import Session

TRIGGER = "2 seconds"
"""Each micro-batch of a site takes a minute of the airline's day or more: small batches cost more bytes per row."""

LOOK_SECONDS = 0.5
"""Seconds between two looks at the channels."""


class SitesDemo:
    """The demo on Spark, at five sites."""

    def __init__(self, session: Session, directory: Path, airline: Airline) -> None:
        from braid.hosts.spark.driver.network import Network

        self._spark = session.spark
        self._directory = directory
        self._feed = Feed(directory / "streams", airline)
        self._view = SitesView(airline)
        self._known = airline_statistics(SITES)
        self._network = Network(airline_network(), directory=directory / "network", trigger=TRIGGER)
        self._writers: dict[str, Any] = {}
        """Spark's queries that write the results, by the name of the query."""

    def run(self, seconds: int | None) -> SitesSummary | None:
        """Run the whole demo. Without a number of seconds it runs until Ctrl-C; the result is None after Ctrl-C."""
        try:
            with progress.status("starting five sites") as status:
                self._feed.send()
                for stream, rows in self._feed.dataframes(self._spark):
                    self._network.site(SITES[stream], self._spark).stream(stream, rows, lateness=LATENESS)
                for position, name in enumerate(QUERIES, 1):
                    status.update(f"deploying query {position} of {len(QUERIES)}: {name}")
                    self._deploy(name)
            self._flow(seconds)
            with progress.status("processing the last rows, and comparing the results with those of DuckDB"):
                self._network.process_available()
                for writer in self._writers.values():
                    writer.processAllAvailable()
                return self._summary()
        except KeyboardInterrupt:
            return None
        finally:
            self._stop()

    def _deploy(self, name: str) -> None:
        """Start a query, and wait until its first rows have reached its last site."""
        query = self._network.deploy(QUERIES[name], name=name, sink=SINKS[name], statistics=self._known, shards=1)
        writer = query.dataframe.writeStream.format("parquet").option("path", str(self._directory / "results" / name))
        writer = writer.option("checkpointLocation", str(self._directory / "checkpoints" / name))
        self._writers[name] = writer.trigger(processingTime=TRIGGER).start()
        while not all(query.progress().values()):
            self._check()
            time.sleep(0.1)

    def _flow(self, seconds: int | None) -> None:
        """Let the streams flow and show the screen, for the given seconds or until Ctrl-C."""
        begin = time.monotonic()
        with Live(console=progress, refresh_per_second=4, transient=True) as live:
            while seconds is None or time.monotonic() - begin < seconds:
                elapsed = time.monotonic() - begin
                # The results of an endless demo are not compared, so old input can go.
                self._feed.keep_up(elapsed, forget=seconds is None)
                self._check()
                results = {query.name: self._results_so_far(query) for query in self._network.queries}
                live.update(self._view.panel(elapsed, self._feed, self._network.queries, results))
                time.sleep(LOOK_SECONDS)

    def _check(self) -> None:
        """Raise the error of a site that failed, or of results that cannot be written."""
        from braid.hosts.spark.driver.failures import error_for

        for query in self._network.queries:
            query.check()
        for name, writer in self._writers.items():
            failure = writer.exception()
            if failure is not None:
                raise error_for(f"the results of query '{name}' cannot be written", failure) from failure

    def _results_so_far(self, query: DeployedQuery) -> int:
        """The rows on the channels of results."""
        lasts = [self._network.channels.open(channel).last() for channel in query.deployed.results]
        return sum(last.carried.rows for last in lasts if last is not None)

    def _summary(self) -> SitesSummary:
        streams = self._feed.tables()
        results = {name: self._result(name) for name in QUERIES}
        summary = Summary.of(streams, results)
        shipped = tuple(self._shipped(query, streams) for query in self._network.queries)
        return SitesSummary(summary.rows, summary.queries, shipped)

    def _result(self, name: str) -> pa.Table:
        return pq.ParquetDataset(self._directory / "results" / name).read().drop_columns(["event_time"])

    def _shipped(self, query: DeployedQuery, streams: Mapping[str, pa.Table]) -> Shipped:
        """What crossed links, and what would have if everything had been shipped to the sink in as many batches."""
        batches = max(status.batches for status in statuses_of(query.deployed, self._network.channels))
        everything = simulate(
            QUERIES[query.name],
            streams,
            self._network.topology,
            sites=SITES,
            sink=SINKS[query.name],
            planner="at_sink",
            statistics=self._known,
            lateness=LATENESS,
            batch_rows=-(-max(table.num_rows for table in streams.values()) // batches),
        )
        crossed = {link: traffic.bytes for link, traffic in query.traffic().items()}
        return Shipped(query.name, crossed, {link: traffic.bytes for link, traffic in everything.links.items()})

    def _stop(self) -> None:
        from braid.hosts.spark.driver.failures import SPARK_FAILURES

        self._network.stop()
        for writer in self._writers.values():
            try:
                writer.stop()
            except SPARK_FAILURES:  # Java has ended already, as when all processes are told to end.
                return
