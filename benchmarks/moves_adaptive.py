"""A plan that follows prices and rates beside one that stays, at three sites that share one Spark.

The regions, prices and queries are those of `moves_simulated`, with more rows a second: what each batch has of its own
would be most of the bytes otherwise. Event time goes on at twice the pace of the clock.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import braid
from benchmarks.moves_files import Arrival, check_results, write_results
from benchmarks.moves_simulated import (
    BIN,
    CHEAP,
    DEAR,
    EQUAL,
    EXCHANGED,
    PRICES,
    RATES,
    SINK,
    SITES,
    TEXT,
    Comparison,
    Costs,
    Rates,
    draw,
    known_at_first,
    prices_of,
    regions,
    streams,
    table,
)

PACE = 2
"""Seconds of event time in a second of the clock."""
TIMES = 6
"""How many times as many rows come as in the simulation."""

OFFLINE = """
SELECT a.k, b.l, c.payload FROM a, b, c WHERE a.k = b.k AND b.l = c.l
AND greatest(a.ts, b.ts, c.ts) < least(a.ts, b.ts, c.ts) + INTERVAL 10 SECONDS"""


@dataclass(frozen=True)
class Run:
    """What was paid in each few seconds of event time, and when the plan changed, in seconds of event time."""

    paid: Costs
    changes: tuple[float, ...]


def section(spark: SparkSession, short: bool, target: Path) -> list[str]:
    seconds = 80 if short else 200
    compared, moments = [], []
    for what, rates, network, later in (
        (PRICES, EQUAL, regions(CHEAP), regions(DEAR)),
        (RATES, EXCHANGED, regions(0.05), None),
    ):
        more = {name: (first * TIMES, then * TIMES) for name, (first, then) in rates.items()}
        fixed, adaptive = (of_plan(spark, adapt, more, seconds, network, later) for adapt in (False, True))
        compared.append(Comparison(what, "USD", fixed.paid, adaptive.paid))
        moments.append(", ".join(f"{moment:.0f} s" for moment in adaptive.changes) or "at no time")
    draw(compared, seconds, target / "moves_adaptive_spark.png")
    return [
        "## When prices or rates change, on Spark",
        "",
        f"The same at three sites that share one Spark, with {TIMES} times as many rows; event time goes on at {PACE} "
        f"times the pace of the clock. What changes does so after {seconds // 2} s of event time, and the run ends "
        f"after {seconds} s. The plan that follows changed at {moments[0]} when prices changed, and at {moments[1]} "
        "when rates did. All results are those of DuckDB over the same rows.",
        "",
        *table(compared),
        "",
        "![Cost over time on Spark](moves_adaptive_spark.png)",
    ]


def of_plan(
    spark: SparkSession,
    adapt: bool,
    rates: Rates,
    seconds: int,
    topology: braid.Topology,
    later: braid.Topology | None,
) -> Run:
    """The query with a plan that stays or follows; in the middle the network may become a later one."""
    # Spark may still be saving a snapshot of the state when a query has stopped.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        place = Path(directory)
        tables = streams(rates, seconds)
        _write(tables, seconds, place / "all")
        arrive = Arrival(place)
        network = braid.Network(topology, directory=place / "network", adapt=adapt)
        for name, site in SITES.items():
            network.site(site, spark).stream(name, arrive.read(spark, name, most_files=5))
        known = known_at_first(tables, seconds)
        query = network.deploy(TEXT, sink=SINK, planner="exact", cost="money", statistics=known, shards=1)
        results = write_results(query, place)
        arrive.until(1)
        query.process_available()  # Starting takes Spark longer than anything later.
        began = time.time()
        prices, before = prices_of(topology), dict[str, int]()
        paid = np.zeros(seconds // BIN)
        for second in range(2, seconds + 1):
            time.sleep(max(0.0, began + second / PACE - time.time()))
            query.check()
            arrive.until(second)
            if second % BIN == 0:
                crossed = {link: traffic.bytes for link, traffic in query.traffic().items()}
                paid[second // BIN - 1] = _paid(crossed, before, prices)
                before = crossed
            if later is not None and second == seconds // 2:
                network.registry.plans.rewire(later)  # As the edited file of a network does.
                prices = prices_of(later)
        query.pin()
        query.await_change()
        changes = tuple((move.ended - began) * PACE for move in query.history() if move.is_done)
        query.process_available()
        results.processAllAvailable()
        results.stop()
        network.stop()
        check_results(OFFLINE, list(SITES), ["k", "l", "payload"], place)
    return Run(paid, changes)


def _paid(crossed: Mapping[str, int], before: Mapping[str, int], prices: Mapping[str, float]) -> float:
    """What was paid for the bytes that have crossed links since before."""
    return sum((size - before.get(link, 0)) / 1e9 * prices[link] for link, size in crossed.items())


def _write(tables: Mapping[str, pa.Table], seconds: int, directory: Path) -> None:
    """A file for each second of each stream."""
    for name, rows in tables.items():
        (directory / name).mkdir(parents=True)
        times = rows.column("ts").cast(pa.int64()).to_numpy()
        borders = np.searchsorted(times, np.arange(seconds + 1) * 1_000_000)
        for second in range(seconds):
            part = rows.slice(borders[second], borders[second + 1] - borders[second])
            pq.write_table(part, directory / name / f"{second:05d}.parquet")
