"""The demo: a gate agent's view of flights, bags and check-ins, joined as they stream in."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.panel import Panel
from rich.table import Table

from braid.hosts.local import run
from braid.language import parse
from braid.model.plan import Plan
from braid.model.statistics import Statistics, Subject

QUERY = """\
SELECT f.num, f.gate, b.status AS bag, c.status AS passenger
FROM flights [RANGE 5 MINUTES] AS f, baggage [RANGE 1 MINUTE] AS b, checkins [RANGE 1 MINUTE] AS c
WHERE f.num = b.flight AND f.num = c.flight AND f.carrier = 'DL'"""

MINUTES = 60
PER_MINUTE = {"flights": 300, "baggage": 500, "checkins": 240}
FLIGHTS = 300


def airline(minutes: int = MINUTES, seed: int = 1) -> dict[str, pa.Table]:
    """An hour of an airline's operations, at the rates of a large carrier."""
    generator = np.random.default_rng(seed)

    def times(stream: str) -> pa.Array:
        moments = generator.integers(0, minutes * 60_000_000, minutes * PER_MINUTE[stream])
        return pa.array(np.sort(moments) + 1_700_000_000_000_000, pa.timestamp("us"))

    def pick(values: list[str], count: int) -> pa.Array:
        return pa.array(values).take(pa.array(generator.integers(0, len(values), count)))

    def numbers(count: int) -> pa.Array:
        return pa.array(generator.integers(1, FLIGHTS + 1, count))

    counts = {stream: minutes * rate for stream, rate in PER_MINUTE.items()}
    flights, baggage, checkins = (counts[stream] for stream in ("flights", "baggage", "checkins"))
    gates = [f"{pier}{number}" for pier in "ABCD" for number in range(1, 13)]
    return {
        "flights": pa.table(
            {
                "ts": times("flights"),
                "num": numbers(flights),
                "gate": pick(gates, flights),
                "carrier": pick(["DL", "AF", "KL"], flights),
            }
        ),
        "baggage": pa.table(
            {
                "ts": times("baggage"),
                "flight": numbers(baggage),
                "status": pick(["checked", "loaded", "rerouted"], baggage),
            }
        ),
        "checkins": pa.table(
            {
                "ts": times("checkins"),
                "flight": numbers(checkins),
                "status": pick(["at desk", "at gate", "boarded"], checkins),
            }
        ),
    }


def demo() -> None:
    """Run an airline's three-way join in this process and show its plan and its results."""
    show_demo(Console())


def show_demo(console: Console) -> None:
    """Run the query and print it, its plan, its first results and what it took."""
    streams = airline()
    console.print(Panel(QUERY, title="a continuous query", expand=False), highlight=False)
    rates = {
        alias: PER_MINUTE[stream] / 60 for alias, stream in (("f", "flights"), ("b", "baggage"), ("c", "checkins"))
    }
    joined = ("f.num = b.flight", "f.num = c.flight", "b.flight = c.flight")
    equal: dict[Subject, float] = dict.fromkeys(joined, 1 / FLIGHTS)
    plan = Plan.in_text_order(parse(QUERY))
    console.print(Panel(plan.explain(Statistics(rates=rates, selectivities=equal)), title="its plan", expand=False))
    with console.status("joining an hour of three streams (the first run compiles the kernels)"):
        run(QUERY, {name: table.slice(0, 10) for name, table in streams.items()})
        start = time.perf_counter()
        result = run(QUERY, streams, batch_rows=1_000)
        elapsed = time.perf_counter() - start
    shown = Table(title="its first results", title_justify="left")
    for name in result.column_names:
        shown.add_column(name)
    for row in result.slice(0, 8).to_pylist():
        shown.add_row(*map(str, row.values()))
    console.print(shown)
    rows = sum(table.num_rows for table in streams.values())
    console.print(f"{rows:,} rows in, {result.num_rows:,} results out in {elapsed:.2f} s")
