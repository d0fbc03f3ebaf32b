"""Smoke near heat: a join by distance (a band) and by a computed condition, without a key."""

import os

import numpy as np
import pyarrow as pa

import braid
from replay import collect, replay

QUERY = """
SELECT s.room AS smoky, h.room AS hot, s.density, h.celsius
FROM smoke [RANGE 1 MINUTE] AS s, heat [RANGE 2 MINUTES] AS h
WHERE ABS(s.metres - h.metres) < 15 AND s.density * 10 + h.celsius > 80
"""


def streams() -> dict[str, pa.Table]:
    """Ten minutes of a corridor of 40 rooms, each with both kinds of sensors; after five minutes room 17 is on fire."""
    generator = np.random.default_rng(1)

    def readings(name: str, normal: float, alarm: float) -> pa.Table:
        microseconds = np.sort(generator.integers(0, 600_000_000, 400))
        rooms = generator.integers(0, 40, 400)
        burning = (microseconds > 300_000_000) & (abs(rooms - 17) < 2)
        values = generator.normal(normal, 1, 400) + burning * alarm
        times = pa.array(microseconds, pa.timestamp("us", "UTC"))
        return pa.table({"ts": times, "room": rooms, "metres": rooms * 5.0, name: values.round(1)})

    return {"smoke": readings("density", 0.5, 4), "heat": readings("celsius", 21, 40)}


def main(session: braid.Session | None = None) -> pa.Table:
    session = session or braid.Session(log=os.devnull)
    for name, table in streams().items():
        session.stream(name, replay(session.spark, table), lateness="5 seconds")
    return collect(session.sql(QUERY))


if __name__ == "__main__":
    print(main().slice(0, 10).to_pandas())
