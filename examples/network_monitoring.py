"""Packets that passed three routers within ten seconds, and how long they took."""

import os

import numpy as np
import pyarrow as pa

import braid
from replay import collect, replay

QUERY = """
SELECT e.packet, e.source, x.ts - e.ts AS duration
FROM edge [RANGE 10 SECONDS] AS e, core [RANGE 10 SECONDS] AS c, exit [RANGE 10 SECONDS] AS x
WHERE e.packet = c.packet AND c.packet = x.packet AND e.ts < c.ts AND c.ts < x.ts
"""


def streams() -> dict[str, pa.Table]:
    """300 packets. Each router loses some of them and forwards the others with a delay, which may be too long."""
    generator = np.random.default_rng(1)
    packets = np.arange(300)
    arrivals = np.sort(generator.integers(0, 60_000_000, len(packets)))
    tables = {}
    for router in ("edge", "core", "exit"):
        order = np.argsort(arrivals)
        times = pa.array(arrivals[order], pa.timestamp("us", "UTC"))
        sources = [f"10.0.0.{packet % 7}" for packet in packets[order]]
        tables[router] = pa.table({"ts": times, "packet": packets[order], "source": sources})
        forwarded = generator.random(len(packets)) < 0.9
        delays = generator.exponential(4e6, forwarded.sum()).astype(int)
        packets, arrivals = packets[forwarded], arrivals[forwarded] + delays
    return tables


def main(session: braid.Session | None = None) -> pa.Table:
    session = session or braid.Session(log=os.devnull)
    for router, table in streams().items():
        session.stream(router, replay(session.spark, table), lateness="1 second")
    query = session.sql(QUERY)
    result = collect(query)
    print(query.explain())
    return result


if __name__ == "__main__":
    print(main().slice(0, 10).to_pandas())
