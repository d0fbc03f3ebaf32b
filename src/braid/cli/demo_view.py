"""The output of the demo: a panel of streams and queries while they run, and a summary at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.panel import Panel
from rich.table import Table

from braid.adapt.history import RecordedChange
from braid.model.access import WrittenStep, step_text
from braid.workloads.airline_day import QUERIES, Airline

if TYPE_CHECKING:
    from braid.hosts.spark.driver.job_runner import Running

RATE_SECONDS = 10.0
"""Rates are averages over this many seconds."""


@dataclass(frozen=True)
class ChangeText:
    """A plan change of a query, described for the user."""

    query: str
    text: str


@dataclass(frozen=True)
class Outcome:
    """How many results a query gave, and whether they equal those of the oracle; None if DuckDB is not installed."""

    query: str
    results: int
    equal: bool | None


@dataclass(frozen=True)
class Summary:
    """The end of a demo: how many rows came in, the results of each query, and the plan changes."""

    rows: int
    queries: tuple[Outcome, ...]
    changes: list[ChangeText] = field(default_factory=list)

    @classmethod
    def of(cls, streams: Mapping[str, pa.Table], results: Mapping[str, pa.Table]) -> Summary:
        outcomes = tuple(
            Outcome(name, result.num_rows, _equals_oracle(name, result, streams)) for name, result in results.items()
        )
        return cls(sum(table.num_rows for table in streams.values()), outcomes)


def _equals_oracle(name: str, result: pa.Table, streams: Mapping[str, pa.Table]) -> bool | None:
    try:
        from braid.testing import compare_rows, oracle
    except ImportError:
        return None
    return not compare_rows(result, oracle(QUERIES[name], streams))


def print_summary(console: Console, summary: Summary) -> None:
    table = Table("query", "results", "equal to the oracle's", title=f"{summary.rows:,} rows in", title_justify="left")
    for outcome in summary.queries:
        equal = {True: "yes", False: "no", None: "not checked: pip install 'braid[testing]'"}[outcome.equal]
        table.add_row(outcome.query, f"{outcome.results:,}", equal)
    console.print(table)
    for change in summary.changes:
        console.print(f"[bold]{change.query}[/bold] {change.text}")


class View:
    """The screen while the demo runs."""

    def __init__(self, airline: Airline) -> None:
        self._airline = airline
        self._totals: list[tuple[float, dict[str, int]]] = []
        """The totals of all queries at each refresh of the last RATE_SECONDS, with its time."""
        self._first_seen: dict[tuple[str, int], float] = {}
        """When each plan change was first seen, by query and number of the change."""
        self.changes: list[ChangeText] = []

    def panel(self, elapsed: float, minute: int, tables: Mapping[str, pa.Table], running: list[Running]) -> Panel:
        """The whole screen. The newest change comes first, because a terminal of 24 lines cuts off the bottom."""
        title = f"an airline, thirty times faster than real time: {elapsed:.0f} s"
        changes = [f"[bold]{change.query}[/bold] {change.text}" for change in reversed(self.changes[-3:])]
        return Panel(Group(self._streams(minute, tables), self._queries(elapsed, running), *changes), title=title)

    def _streams(self, minute: int, tables: Mapping[str, pa.Table]) -> Table:
        table = plain_table("stream", "rows a minute", "")
        burst = self._airline.burst
        for stream, rows in tables.items():
            bursting = burst is not None and burst.stream == stream and burst.at(minute)
            table.add_row(stream, f"{rows.num_rows:,}", "[bold red]burst[/bold red]" if bursting else "")
        return table

    def _queries(self, elapsed: float, running: list[Running]) -> Table:
        totals = {query.name: (query.query.progress() or {}).get("total", {}) for query in running}
        by_key = {f"{name} {key}": count for name, total in totals.items() for key, count in total.items()}
        self._totals.append((elapsed, by_key))
        self._totals = [entry for entry in self._totals if entry[0] >= elapsed - RATE_SECONDS]
        table = plain_table("query", "rows/s in", "results/s", "results", "plan")
        for query in running:
            plan = "; ".join(f"{head}: {', '.join(rest)}" for head, rest in query.query.plan.sequences.items())
            rates = [self._rate(f"{query.name} {key}") for key in ("rows_in", "rows_out")]
            table.add_row(query.name, *rates, f"{totals[query.name].get('rows_out', 0):,}", plan)
        return table

    def _rate(self, key: str) -> str:
        """Rows per second since the oldest totals; empty until they are a second old."""
        (begin, before), (end, after) = self._totals[0], self._totals[-1]
        return "" if end - begin < 1 else f"{(after.get(key, 0) - before.get(key, 0)) / (end - begin):,.0f}"

    def note_changes(self, elapsed: float, running: list[Running]) -> None:
        """Collect the plan changes of all queries anew: the gain of an earlier change may be known by now."""
        self.changes = []
        for query in running:
            for position, change in enumerate(query.query.history()):
                seen = self._first_seen.setdefault((query.name, position), elapsed)
                self.changes.append(ChangeText(query.name, _description(change, seen)))


def plain_table(*columns: str) -> Table:
    """A table without borders: the plan changes need the lines."""
    return Table(*columns, box=SIMPLE_HEAD, show_edge=False, pad_edge=False, expand=True)


def _description(change: RecordedChange, elapsed: float) -> str:
    measured = "" if change.measured is None else f"; measured: {change.measured:.0%}"
    return f"changed its plan at {elapsed:.0f} s: {change.reason}; {change.verdict}{measured} ({_orders(change)})"


def _orders(change: RecordedChange) -> str:
    """The probe sequences that changed; the plans of the demo are all probe sequences."""
    before, after = (dict(plan) if isinstance(plan, Mapping) else {} for plan in (change.before, change.after))
    changed_heads = [head for head, rest in after.items() if tuple(rest) != tuple(before.get(head, ()))]
    orders = [f"{head}: {_steps(before.get(head, ()))}, now {_steps(after[head])}" for head in changed_heads]
    return "; ".join(orders)


def _steps(sequence: Sequence[WrittenStep]) -> str:
    return ", ".join(map(step_text, sequence))
