"""Suspicious payments across three cloud regions, for the least money, beside shipping everything to one region.

Logins are many and start in Singapore, where outgoing traffic costs most. Alerts are few and start in Frankfurt, where
the results are wanted. So the plan brings the alerts to the logins, not the logins to the alerts. What is measured
includes about 1 KB for the schema of each batch, which shows where few rows are shipped.
"""

import os

import numpy as np
import pyarrow as pa

import braid
from braid.hosts.spark.driver.deployed_query import DeployedQuery
from replay import collect, replay

QUERY = """
SELECT a.account, a.score, l.device, p.amount
FROM alerts [RANGE 30 SECONDS] AS a, logins [RANGE 1 MINUTE] AS l, payments [RANGE 30 SECONDS] AS p
WHERE a.account = l.account AND l.account = p.account AND a.score > 90
"""

SITES = {"logins": "singapore", "payments": "virginia", "alerts": "frankfurt"}
SINK = "frankfurt"
SECONDS, ACCOUNTS = 240, 2_000
RATES = {"logins": 120, "payments": 40, "alerts": 2}

LATENCIES = {("virginia", "frankfurt"): 0.046, ("virginia", "singapore"): 0.11, ("frankfurt", "singapore"): 0.08}
EGRESS = {"virginia": 0.02, "frankfurt": 0.02, "singapore": 0.09}
"""USD for each GB that leaves a region. Rounded: bring your own prices."""

REGIONS = braid.Topology.from_links(
    {"source": source, "target": target, "latency": latency, "price_per_gb": EGRESS[source], "one_way": True}
    for ends, latency in LATENCIES.items()
    for source, target in (ends, ends[::-1])
)
KNOWN = braid.Statistics(
    rates={"l": 120, "p": 40, "a": 2},
    sizes={"l": 28, "p": 16, "a": 16},
    selectivities={"a.account = l.account": 1 / ACCOUNTS, "l.account = p.account": 1 / ACCOUNTS, "a.score > 90": 0.1},
)


def streams() -> dict[str, pa.Table]:
    """Four minutes of each stream."""
    generator = np.random.default_rng(1)
    tables = {}
    for name, rate in RATES.items():
        rows = rate * SECONDS
        times = np.sort(generator.integers(0, SECONDS * 1_000_000, rows))
        tables[name] = pa.table(
            {"ts": pa.array(times, pa.timestamp("us", "UTC")), "account": generator.integers(0, ACCOUNTS, rows)}
        )
    devices = [f"{code:016x}" for code in generator.integers(0, 2**63, tables["logins"].num_rows)]
    tables["logins"] = tables["logins"].append_column("device", pa.array(devices))
    amounts = generator.integers(1, 5_000, tables["payments"].num_rows)
    tables["payments"] = tables["payments"].append_column("amount", pa.array(amounts))
    scores = generator.integers(1, 101, tables["alerts"].num_rows)
    tables["alerts"] = tables["alerts"].append_column("score", pa.array(scores))
    return tables


def dollars_per_hour(query: DeployedQuery) -> float:
    """The price of what has crossed the links, for an hour of such streams."""
    prices = {str(link): link.price_per_gb or 0.0 for link in REGIONS.links}
    paid = sum(traffic.bytes / 1e9 * prices[link] for link, traffic in query.traffic().items())
    return paid * 3_600 / SECONDS


def main(session: braid.Session | None = None) -> pa.Table:
    spark = (session or braid.Session(log=os.devnull)).spark
    network = braid.Network(REGIONS)
    for name, table in streams().items():
        network.site(SITES[name], spark).stream(name, replay(spark, table), lateness="1 second")
    planned = network.deploy(QUERY, name="planned", sink=SINK, cost="money", statistics=KNOWN)
    everything = network.deploy(QUERY, name="everything", sink=SINK, cost="money", statistics=KNOWN, planner="at_sink")
    network.process_available()
    result = collect(planned)
    print(planned.explain())
    for query in (planned, everything):
        print(f"\n{query.name}: {query.bill.total:.2g} USD/hour expected, {dollars_per_hour(query):.2g} measured")
        for link, traffic in query.traffic().items():
            print(f"  {link}: {traffic.rows:,} rows, {traffic.bytes:,} bytes")
    network.stop()
    return result


if __name__ == "__main__":
    print(main().slice(0, 10).to_pandas())
