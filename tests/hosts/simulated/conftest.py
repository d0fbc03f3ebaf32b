"""Random cases, random faults, and an airport for simulations."""

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

import braid
from braid.adapt.controller import Policy
from braid.hosts.simulated.faults import PROFILES, Faults
from braid.testing import random_case
from braid.testing.cluster import counts_rows

START = datetime(2024, 1, 1)
LINE = braid.Topology.from_links([("paris", "lyon", 0.004), ("lyon", "nice", 0.006)])
"""Three sites in a row, with latencies in seconds."""

TEXT = """SELECT f.gate, b.tag FROM flights [RANGE 5 SECONDS] f, bags [RANGE 3 SECONDS] b WHERE f.num = b.flight"""
SITES = {"flights": "paris", "bags": "nice"}

EAGER = Policy(threshold=0.0, horizon=float("inf"), drift=0.0)
"""Changes the plan as soon as any other one looks cheaper."""


def seeds(count: int, first: int = 0) -> list[int]:
    """The seeds of the next cases whose windows do not count rows."""
    suitable = _seeds_without_row_windows(first)
    return [next(suitable) for _ in range(count)]


def _seeds_without_row_windows(first: int) -> Iterator[int]:
    return (seed for seed in range(first, first + 1_000_000) if not counts_rows(random_case(seed)))


def random_faults(seed: int) -> Faults:
    """Faults, the same for the same seed. In half of the cases nothing goes wrong in the second half of the time."""
    chance = random.Random(f"random faults {seed}")
    if chance.random() < 0.4:
        return PROFILES[chance.choice(sorted(PROFILES))]

    def often(most: int) -> int:
        return chance.randint(1, most) if chance.random() < 0.5 else 0

    def likely(rate: float) -> float:
        return rate if chance.random() < 0.5 else 0.0

    return Faults(
        crash_rate=likely(0.03),
        absences=often(4),
        outages=often(4),
        slowdowns=often(4),
        partitions=often(2),
        restarts=often(3),
        repeats=likely(0.2),
        delays=likely(0.2),
        silences=often(3),
        skew=likely(20.0),
        seconds=chance.choice([0.2, 2.0, 10.0]),
        until=chance.choice([0.5, 1.0]),
    )


def table(rows: int, **columns: Any) -> pa.Table:
    """A row every 100 milliseconds."""
    times = [START + timedelta(milliseconds=100 * row) for row in range(rows)]
    return pa.table({"ts": pa.array(times, pa.timestamp("us")), **columns})


def airport(rows: int = 100) -> dict[str, pa.Table]:
    """The streams of `TEXT`."""
    return {
        "flights": table(rows, num=[row % 10 for row in range(rows)], gate=[f"A{row % 9}" for row in range(rows)]),
        "bags": table(rows, flight=[row % 10 for row in range(rows)], tag=list(range(rows))),
    }
