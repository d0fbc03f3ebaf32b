"""Smoke near heat: a theta join, on distance and difference, with no key to join on."""

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
    """Ten minutes of a corridor with a sensor of each kind in 40 rooms; something burns in room 17 after five."""
    generator = np.random.default_rng(1)

    def readings(name: str, normal: float, alarm: float) -> pa.Table:
        moments = np.sort(generator.integers(0, 600_000_000, 400))
        rooms = generator.integers(0, 40, 400)
        burning = (moments > 300_000_000) & (abs(rooms - 17) < 2)
        values = generator.normal(normal, 1, 400) + burning * alarm
        times = pa.array(moments, pa.timestamp("us", "UTC"))
        return pa.table({"ts": times, "room": rooms, "metres": rooms * 5.0, name: values.round(1)})

    return {"smoke": readings("density", 0.5, 4), "heat": readings("celsius", 21, 40)}


def main(session: braid.Session | None = None) -> pa.Table:
    session = session or braid.Session(log=os.devnull)
    for name, table in streams().items():
        session.stream(name, replay(session.spark, table), lateness="5 seconds")
    return collect(session.sql(QUERY))


if __name__ == "__main__":
    print(main().slice(0, 10).to_pandas())
