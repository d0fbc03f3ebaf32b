"""What planned deployments ship, in bytes and in money, beside shipping everything to the sink; under simulation.

`python -m benchmarks.sites_links` prints this part of the page alone: it does not depend on the machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import braid
from braid.hosts.simulated.simulation import Simulation
from braid.model.network.generators import cloud_regions
from braid.testing import assert_same_rows
from braid.workloads.airline_day import QUERIES, Airline
from braid.workloads.airline_sites import SINKS, SITES, airline_network

PAYMENTS = """\
SELECT a.account, a.score, l.device, p.amount
FROM alerts [RANGE 30 SECONDS] AS a, logins [RANGE 1 MINUTE] AS l, payments [RANGE 30 SECONDS] AS p
WHERE a.account = l.account AND l.account = p.account AND a.score > 90"""
REGIONS = {"logins": "ap-southeast-1", "payments": "us-east-1", "alerts": "eu-central-1"}
RATES = {"logins": 1_200, "payments": 400, "alerts": 20}
ACCOUNTS, SECONDS = 20_000, 120
MINUTES = 60


@dataclass(frozen=True)
class Crossed:
    """The bytes that have crossed a link, and those that were planned to."""

    link: str
    planned: float
    measured: int


@dataclass(frozen=True)
class Shipped:
    """Of a query: bytes over links and USD per hour, as planned, as measured, and with everything shipped."""

    query: str
    links: tuple[Crossed, ...]
    everything: int
    dollars: float = 0.0
    dollars_everything: float = 0.0

    @property
    def planned(self) -> float:
        return sum(link.planned for link in self.links)

    @property
    def measured(self) -> int:
        return sum(link.measured for link in self.links)


def airline(minutes: int) -> list[Shipped]:
    """The airline's queries, in batches of a minute."""
    day = [Airline().minute(number) for number in range(minutes)]
    tables = {name: pa.concat_tables([minute[name] for minute in day]) for name in SITES}
    rows = max(table.num_rows for table in tables.values()) // minutes
    return [
        compared(name, text, tables, airline_network(), SITES, SINKS[name], "network_usage", rows)
        for name, text in QUERIES.items()
    ]


def regions() -> Shipped:
    """Suspicious payments over three cloud regions, for the least money, in 50 batches of each stream."""
    return compared("payments", PAYMENTS, payments(), cloud_regions(), REGIONS, "eu-central-1", "money")


def compared(
    name: str,
    text: str,
    tables: Mapping[str, pa.Table],
    topology: braid.Topology,
    sites: Mapping[str, str],
    sink: str,
    cost: str,
    batch_rows: int | None = None,
) -> Shipped:
    """A query as planned from its own streams, and with everything shipped to the sink; their results are the same."""
    planned, everything = (
        braid.simulate(
            text, tables, topology, sites=sites, sink=sink, cost=cost, planner=planner, batch_rows=batch_rows
        )
        for planner in ("exact", "at_sink")
    )
    assert_same_rows(planned.results, everything.results)
    prices = {str(link): link.price_per_gb or 0.0 for link in topology.links}

    def dollars(simulation: Simulation) -> float:
        paid = sum(traffic.bytes / 1e9 * prices[link] for link, traffic in simulation.links.items())
        return paid * 3_600 / simulation.seconds

    return Shipped(
        name,
        tuple(
            Crossed(link, (traffic.planned or 0.0) * planned.seconds, traffic.bytes)
            for link, traffic in planned.links.items()
        ),
        sum(traffic.bytes for traffic in everything.links.values()),
        dollars(planned),
        dollars(everything),
    )


def payments() -> dict[str, pa.Table]:
    choose = np.random.default_rng(1)
    tables = {}
    for name, rate in RATES.items():
        times = np.sort(choose.integers(0, SECONDS * 1_000_000, rate * SECONDS))
        accounts = choose.integers(0, ACCOUNTS, len(times))
        tables[name] = pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC")), "account": accounts})
    columns = {
        "logins": ("device", [f"{code:016x}" for code in choose.integers(0, 2**63, RATES["logins"] * SECONDS)]),
        "payments": ("amount", choose.integers(1, 5_000, RATES["payments"] * SECONDS)),
        "alerts": ("score", choose.integers(1, 101, RATES["alerts"] * SECONDS)),
    }
    return {name: table.append_column(columns[name][0], pa.array(columns[name][1])) for name, table in tables.items()}


def section(airline: Sequence[Shipped], regions: Shipped) -> list[str]:
    """The part of the page on what crosses links."""
    lines = [
        "",
        "## What crosses links",
        "",
        "Simulated, with statistics measured on the streams; the results of both are the same. "
        "`python -m benchmarks.sites_links`",
        "",
        "| query | planned MB | measured MB | everything shipped MB | times less |",
        "|---|---|---|---|---|",
    ]
    for found in [*airline, regions]:
        figures = f"{found.planned / 1e6:.3f} | {found.measured / 1e6:.3f} | {found.everything / 1e6:.3f}"
        lines.append(f"| {found.query} | {figures} | {found.everything / found.measured:.1f} |")
    everything = sum(found.everything for found in airline) / sum(found.measured for found in airline)
    return [
        *lines,
        "",
        f"All queries of the airline together ship {everything:.1f} times less. Payments, over cloud regions, cost "
        f"{regions.dollars:.2g} USD an hour, and {regions.dollars_everything:.2g} with everything shipped.",
        "",
        "The plan's bill link by link. Batches of joins have tens of rows here, so that most bytes are what each batch "
        "has of its own: its header, its Arrow schema, and the watermark of one without rows. The bill has these too.",
        "",
        "| query | link | planned KB | measured KB | measured over planned |",
        "|---|---|---|---|---|",
        *(
            f"| {found.query} | {link.link} | {link.planned / 1e3:.1f} | {link.measured / 1e3:.1f} "
            f"| {link.measured / link.planned - 1:+.1%} |"
            for found in [*airline, regions]
            for link in found.links
        ),
    ]


if __name__ == "__main__":
    print("\n".join(section(airline(MINUTES), regions())))
