"""The output of the demo at five sites: streams, queries and links while they run, and a summary at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.panel import Panel
from rich.table import Table

from braid.cli.demo_feed import Feed
from braid.cli.demo_view import RATE_SECONDS, Outcome, Summary, plain_table, print_summary
from braid.workloads.airline_day import Airline
from braid.workloads.airline_sites import SINKS, SITES

if TYPE_CHECKING:
    from braid.hosts.spark.driver.deployed_query import DeployedQuery


@dataclass(frozen=True)
class Shipped:
    """The bytes of a query on each link: measured, and simulated for shipping everything to the sink."""

    query: str
    measured: Mapping[str, int]
    everything: Mapping[str, int]


@dataclass(frozen=True)
class SitesSummary:
    """The end of a demo at several sites: rows in, the results of each query, and what crossed the links."""

    rows: int
    queries: tuple[Outcome, ...]
    shipped: tuple[Shipped, ...]


def print_sites_summary(console: Console, summary: SitesSummary) -> None:
    print_summary(console, Summary(summary.rows, summary.queries))
    table = Table("query", "link", "bytes", "everything shipped to the sink")
    totals: Counter[str] = Counter()
    for shipped in summary.shipped:
        for link in sorted({*shipped.measured, *shipped.everything}):
            measured, everything = shipped.measured.get(link, 0), shipped.everything.get(link, 0)
            table.add_row(shipped.query, link, f"{measured:,}", f"{everything:,}")
            totals += Counter(measured=measured, everything=everything)
        table.add_section()
    table.add_row("all", "", f"{totals['measured']:,}", f"{totals['everything']:,}")
    console.print(table)
    if totals["measured"]:
        times = totals["everything"] / totals["measured"]
        console.print(
            f"Shipping everything takes {times:.1f} times the bytes: simulated (braid.simulate) with the same rows, in "
            "as many batches as Spark made."
        )


class SitesView:
    """The screen while the demo runs."""

    def __init__(self, airline: Airline) -> None:
        self._airline = airline
        self._totals: list[tuple[float, Counter[str]]] = []
        """The bytes on all links at each refresh of the last RATE_SECONDS, with its time."""

    def panel(self, elapsed: float, feed: Feed, queries: Sequence[DeployedQuery], results: Mapping[str, int]) -> Panel:
        """The whole screen; `results` tells how many each query has given so far."""
        title = f"an airline at five sites, thirty times faster than real time: {elapsed:.0f} s"
        tables = self._streams(feed), _queries(queries, results), self._links(elapsed, queries)
        return Panel(Group(*tables), title=title)

    def _streams(self, feed: Feed) -> Table:
        table = plain_table("stream", "starts at", "rows a minute", "")
        burst = self._airline.burst
        for stream, rows in feed.minutes[-1].items():
            bursting = burst is not None and burst.stream == stream and burst.at(feed.sent - 1)
            mark = "[bold red]burst[/bold red]" if bursting else ""
            table.add_row(stream, SITES[stream], f"{rows.num_rows:,}", mark)
        return table

    def _links(self, elapsed: float, queries: Sequence[DeployedQuery]) -> Table:
        bytes_, rows = Counter[str](), Counter[str]()
        for query in queries:
            for link, traffic in query.traffic().items():
                bytes_[link] += traffic.bytes
                rows[link] += traffic.rows
        self._totals.append((elapsed, bytes_))
        self._totals = [entry for entry in self._totals if entry[0] >= elapsed - RATE_SECONDS]
        table = plain_table("link", "bytes/s", "bytes", "rows")
        for link in sorted(bytes_):
            table.add_row(link, self._rate(link), f"{bytes_[link]:,}", f"{rows[link]:,}")
        return table

    def _rate(self, link: str) -> str:
        """Bytes per second since the oldest totals; empty until they are a second old."""
        (begin, before), (end, after) = self._totals[0], self._totals[-1]
        return "" if end - begin < 1 else f"{(after[link] - before[link]) / (end - begin):,.0f}"


def _queries(queries: Sequence[DeployedQuery], results: Mapping[str, int]) -> Table:
    table = plain_table("query", "wanted at", "results", "joins")
    for query in queries:
        table.add_row(query.name, SINKS[query.name], f"{results[query.name]:,}", _joins(query))
    return table


def _joins(query: DeployedQuery) -> str:
    """The joins of a deployment from the first to the last, each with its site."""
    lines = [line.strip() for line in query.explain().splitlines() if " ⋈ " in line and " at " in line]
    return ", ".join(reversed(lines))
