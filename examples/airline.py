"""The displays of an airport terminal: a join of four streams whose plan is changed while it runs."""

import os

import pyarrow as pa

import braid
from braid.workloads.airline_day import QUERIES, Airline
from replay import collect, replay

QUERY = QUERIES["terminal"]


def streams() -> dict[str, pa.Table]:
    """Eight minutes of flights, weather, check-ins and bags."""
    minutes = [Airline().minute(number) for number in range(8)]
    return {name: pa.concat_tables([tables[name] for tables in minutes]) for name in minutes[0]}


def main(session: braid.Session | None = None) -> pa.Table:
    session = session or braid.Session(log=os.devnull)
    for name, table in streams().items():
        session.stream(name, replay(session.spark, table), lateness="1 minute")
    query = session.sql(QUERY)
    plan = {"FL": ["CI", "BG", "WR"], "WR": ["FL", "CI", "BG"], "CI": ["FL", "BG", "WR"], "BG": ["FL", "CI", "WR"]}
    query.pin(plan)  # Takes effect at the next micro-batch, without a restart and with the windows kept.
    result = collect(query)
    print(query.explain())
    return result


if __name__ == "__main__":
    print(main().slice(0, 10).to_pandas())
