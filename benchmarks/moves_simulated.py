"""A plan that follows prices and rates beside one that stays, under simulation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

import braid
from braid.hosts.simulated.simulation import Simulation
from braid.model.network.sites import Link
from braid.testing import assert_same_rows

SECONDS = 360
BIN = 20
"""The seconds whose bytes are one point of the plot."""

TEXT = """
SELECT a.k, b.l, c.payload
FROM a [RANGE 10 SECONDS], b [RANGE 10 SECONDS], c [RANGE 10 SECONDS]
WHERE a.k = b.k AND b.l = c.l"""
SITES = {"a": "frankfurt", "b": "virginia", "c": "singapore"}
SINK = "frankfurt"
KEYS = 100_000

CHEAP, DEAR = 0.02, 0.4
"""The price of a GB that leaves Singapore, first and then."""

EQUAL = {"a": (150, 150), "b": (150, 150), "c": (150, 150)}
EXCHANGED = {"a": (20, 400), "b": (100, 100), "c": (400, 20)}
"""The rows a second of each stream, in the first half and in the second."""

PRICES = f"what leaves a region: {CHEAP}, then {DEAR} USD a GB"
RATES = "the rates of two streams, exchanged"


Costs = np.ndarray[Any, np.dtype[np.float64]]
Rates = Mapping[str, tuple[int, int]]


@dataclass(frozen=True)
class Comparison:
    """The cost of each few seconds, with a plan that stays and with one that follows."""

    what: str
    unit: str
    fixed: Costs
    adaptive: Costs

    @property
    def fixed_after(self) -> float:
        return float(self.fixed[len(self.fixed) // 2 :].sum())

    @property
    def adaptive_after(self) -> float:
        return float(self.adaptive[len(self.adaptive) // 2 :].sum())


def section(spark: SparkSession, short: bool, target: Path) -> list[str]:
    found = [prices(), rates()]
    draw(found, SECONDS, target / "moves_adaptive.png")
    return [
        "## When prices or rates change",
        "",
        "Simulated. The plan follows by itself, or stays. Cost is that of the second half, after the change.",
        "",
        *table(found),
        "",
        "![Cost over time](moves_adaptive.png)",
    ]


def table(found: Sequence[Comparison]) -> list[str]:
    return [
        "| what changes | fixed | adaptive | times less |",
        "|---|---|---|---|",
        *(
            f"| {one.what} | {one.fixed_after:.3g} {one.unit} | {one.adaptive_after:.3g} {one.unit} | "
            f"{one.fixed_after / one.adaptive_after:.1f} |"
            for one in found
        ),
    ]


def prices() -> Comparison:
    """Halfway, what leaves Singapore becomes dear."""
    dear = SECONDS / 2, regions(DEAR)
    return _compare(PRICES, streams(EQUAL, SECONDS), regions(CHEAP), dear)


def rates() -> Comparison:
    """Halfway, the stream with few rows becomes the one with the most, and the other way round."""
    return _compare(RATES, streams(EXCHANGED, SECONDS))


def regions(price: float) -> braid.Topology:
    """Three regions; the price is that of a GB that leaves Singapore."""
    prices = {"frankfurt": 0.05, "virginia": 0.05, "singapore": price}
    latencies = {("virginia", "frankfurt"): 0.045, ("virginia", "singapore"): 0.11, ("frankfurt", "singapore"): 0.08}
    links = [
        Link(source, target, latency, one_way=True, price_per_gb=prices[source])
        for (one, other), latency in latencies.items()
        for source, target in ((one, other), (other, one))
    ]
    return braid.Topology.from_links(links)


def streams(rates: Rates, seconds: int) -> dict[str, pa.Table]:
    """Rows at one rate, and at another from the middle on."""
    generator = np.random.default_rng(5)
    tables = {}
    for name, halves in rates.items():
        middle = seconds // 2
        times = [
            np.sort(generator.uniform(middle * half, middle * (half + 1), rate * middle))
            for half, rate in enumerate(halves)
        ]
        microseconds = (np.concatenate(times) * 1e6).astype(np.int64)
        rows = len(microseconds)
        tables[name] = pa.table(
            {
                "ts": pa.array(microseconds, pa.timestamp("us")),
                "k": generator.integers(0, KEYS, rows),
                "l": generator.integers(0, KEYS, rows),
                "payload": generator.integers(0, 2**60, rows),
            }
        )
    return tables


def _compare(
    what: str, tables: dict[str, pa.Table], network: braid.Topology | None = None, *changes: tuple[float, Any]
) -> Comparison:
    network = network or regions(0.05)
    options: dict[str, Any] = {"sites": SITES, "sink": SINK, "cost": "money", "batch_rows": 500, "changes": changes}
    known = known_at_first(tables, SECONDS)
    fixed, adaptive = (
        braid.simulate(TEXT, tables, network, statistics=known, adapt=adapt, **options) for adapt in (False, True)
    )
    assert_same_rows(fixed.results, adaptive.results)
    networks = [(0.0, network), *changes]
    return Comparison(what, "USD", _paid(fixed, networks), _paid(adaptive, networks))


def known_at_first(tables: dict[str, pa.Table], seconds: int) -> braid.Statistics:
    """What is known when the query is deployed: the rates of the first half."""

    def rate(table: pa.Table) -> float:
        times = table.column("ts").cast(pa.int64()).to_numpy()
        return float((times < seconds / 2 * 1e6).sum() / (seconds / 2))

    return braid.Statistics(
        rates={name: rate(table) for name, table in tables.items()},
        selectivities={"a.k = b.k": 1 / KEYS, "b.l = c.l": 1 / KEYS},
        sizes=dict.fromkeys(tables, 25.0),
    )


def _paid(simulation: Simulation, networks: list[tuple[float, braid.Topology]]) -> Costs:
    """What was paid for the bytes on links in each few seconds, at the prices of the time."""
    paid = np.zeros(SECONDS // BIN + 1)
    for crossing in simulation.crossings:
        network = [network for since, network in networks if since <= crossing.time][-1]
        prices = prices_of(network)
        bin_number = min(int(crossing.time // BIN), len(paid) - 1)
        paid[bin_number] += crossing.bytes / 1e9 * prices[crossing.link]
    return paid


def prices_of(network: braid.Topology) -> dict[str, float]:
    """What a GB costs on each link."""
    return {str(link): link.price_per_gb or 0.0 for link in network.links}


def draw(comparisons: Sequence[Comparison], seconds: int, path: Path) -> None:
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, all_axes = pyplot.subplots(1, len(comparisons), figsize=(9, 3), layout="constrained")
    for axes, found in zip(all_axes, comparisons, strict=True):
        points = np.arange(len(found.fixed)) * BIN
        axes.plot(points, found.fixed * 3_600 / BIN, label="fixed")
        axes.plot(points, found.adaptive * 3_600 / BIN, label="adaptive")
        axes.axvline(seconds / 2, color="grey", linestyle=":")
        axes.set(title=found.what, xlabel="seconds", ylabel=f"{found.unit} an hour", ylim=(0, None))
        axes.legend()
    figure.savefig(path, dpi=110, metadata={"Software": None})
