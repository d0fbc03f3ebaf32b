"""What planned deployments ship, in bytes and in money, beside shipping everything to the sink; under simulation."""

from __future__ import annotations

from collections.abc import Mapping
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
BATCH_SECONDS = 10


@dataclass(frozen=True)
class Shipped:
    """Of a query: bytes over links and USD per hour, as planned, as measured, and with everything shipped."""

    query: str
    planned: float
    measured: int
    everything: int
    dollars: float = 0.0
    dollars_everything: float = 0.0


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
    """Suspicious payments over three cloud regions, for the least money."""
    rows = max(RATES.values()) * BATCH_SECONDS
    return compared("payments", PAYMENTS, payments(), cloud_regions(), REGIONS, "eu-central-1", "money", rows)


def compared(
    name: str,
    text: str,
    tables: Mapping[str, pa.Table],
    topology: braid.Topology,
    sites: Mapping[str, str],
    sink: str,
    cost: str,
    batch_rows: int,
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
        sum(traffic.planned or 0.0 for traffic in planned.links.values()) * planned.seconds,
        sum(traffic.bytes for traffic in planned.links.values()),
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
