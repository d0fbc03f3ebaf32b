"""What the demo shows: streams and queries while they run, and a summary in the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.panel import Panel
from rich.table import Table

from braid.adapt.history import RecordedChange
from braid.workloads.airline_day import QUERIES, Airline

if TYPE_CHECKING:
    from braid.hosts.spark.driver.job_runner import Running

RECENT = 10.0
"""Rates are over so many seconds."""


@dataclass(frozen=True)
class PlanChange:
    query: str
    text: str


@dataclass(frozen=True)
class Outcome:
    """The results of a query; `equal` to the oracle's or not, None where there is no DuckDB to ask."""

    query: str
    results: int
    equal: bool | None


@dataclass(frozen=True)
class Summary:
    rows: int
    queries: tuple[Outcome, ...]
    changes: list[PlanChange] = field(default_factory=list)

    @classmethod
    def of(cls, streams: Mapping[str, pa.Table], results: Mapping[str, pa.Table]) -> Summary:
        outcomes = tuple(Outcome(name, table.num_rows, _equal(name, table, streams)) for name, table in results.items())
        return cls(sum(table.num_rows for table in streams.values()), outcomes)


def _equal(name: str, result: pa.Table, streams: Mapping[str, pa.Table]) -> bool | None:
    try:
        from braid.testing import compare_rows, oracle
    except ImportError:
        return None
    return not compare_rows(result, oracle(QUERIES[name], streams))


def print_summary(console: Console, summary: Summary) -> None:
    shown = Table("query", "results", "equal to the oracle's", title=f"{summary.rows:,} rows in", title_justify="left")
    for outcome in summary.queries:
        equal = {True: "yes", False: "no", None: "not checked: pip install 'braid[testing]'"}[outcome.equal]
        shown.add_row(outcome.query, f"{outcome.results:,}", equal)
    console.print(shown)
    for change in summary.changes:
        console.print(f"[bold]{change.query}[/bold] {change.text}")


class View:
    """The screen while the demo runs."""

    def __init__(self, airline: Airline) -> None:
        self._airline = airline
        self._seen: list[tuple[float, dict[str, int]]] = []
        self._moments: dict[tuple[str, int], float] = {}
        self.changes: list[PlanChange] = []

    def shown(self, passed: float, minute: int, tables: Mapping[str, pa.Table], running: list[Running]) -> Panel:
        """All of it, with the newest change on top of the others: a terminal of 24 lines cuts off what is below."""
        title = f"an airline, thirty times as fast as life: {passed:.0f} s"
        events = [f"[bold]{change.query}[/bold] {change.text}" for change in reversed(self.changes[-3:])]
        return Panel(Group(self._streams(minute, tables), self._queries(passed, running), *events), title=title)

    def _streams(self, minute: int, tables: Mapping[str, pa.Table]) -> Table:
        shown = _plain_table("stream", "rows a minute", "")
        burst = self._airline.burst
        for stream, table in tables.items():
            bursting = burst is not None and burst.stream == stream and burst.at(minute)
            shown.add_row(stream, f"{table.num_rows:,}", "[bold red]burst[/bold red]" if bursting else "")
        return shown

    def _queries(self, passed: float, running: list[Running]) -> Table:
        totals = {query.name: (query.query.progress() or {}).get("total", {}) for query in running}
        self._seen.append((passed, {f"{name} {key}": total[key] for name, total in totals.items() for key in total}))
        self._seen = [entry for entry in self._seen if entry[0] >= passed - RECENT]
        shown = _plain_table("query", "rows/s in", "results/s", "results", "plan")
        for query in running:
            plan = "; ".join(f"{head}: {', '.join(rest)}" for head, rest in query.query.plan.sequences.items())
            rates = [self._rate(f"{query.name} {key}") for key in ("rows_in", "rows_out")]
            shown.add_row(query.name, *rates, f"{totals[query.name].get('rows_out', 0):,}", plan)
        return shown

    def _rate(self, name: str) -> str:
        (begin, before), (end, after) = self._seen[0], self._seen[-1]
        return "" if end - begin < 1 else f"{(after.get(name, 0) - before.get(name, 0)) / (end - begin):,.0f}"

    def note_changes(self, passed: float, running: list[Running]) -> None:
        """Find out which plans have changed, and what has become of the changes found earlier."""
        found = [
            (query.name, number, change) for query in running for number, change in enumerate(query.query.history())
        ]
        for name, number, _ in found:
            self._moments.setdefault((name, number), passed)
        self.changes = [PlanChange(name, _told(change, self._moments[name, number])) for name, number, change in found]


def _plain_table(*columns: str) -> Table:
    """Without borders, whose lines the changes of plan need more."""
    return Table(*columns, box=SIMPLE_HEAD, show_edge=False, pad_edge=False, expand=True)


def _told(change: RecordedChange, passed: float) -> str:
    since = "" if change.confirmed is None else f"; by what came since, {change.confirmed:.0%}"
    return f"changed its plan at {passed:.0f} s: {change.reason}{since} ({_orders(change)})"


def _orders(change: RecordedChange) -> str:
    """What is probed in another order than before; the plans of the demo are probe sequences."""
    before, after = (dict(plan) if isinstance(plan, Mapping) else {} for plan in (change.before, change.after))
    heads = [head for head, rest in after.items() if tuple(rest) != tuple(before.get(head, ()))]
    return "; ".join(f"{head}: {', '.join(before.get(head, ()))}, now {', '.join(after[head])}" for head in heads)
