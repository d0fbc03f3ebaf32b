"""A join that moves back and forth between two sites every minute (figure 36 of the D-CAPE paper).

Rows come at a steady rate, far below what the machine can take, as in the paper. So the throughput is that of the
input, unless a move loses or delays something.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.moves_clock import Interval, running, wait

SITES = {"s0": "paris", "s1": "lyon"}
WINDOW = 20


@dataclass(frozen=True)
class Scale:
    """Rows a second of each stream, and seconds: until windows are full, until the first move, of all that is measured.

    After the first move there is one `every` so many seconds.
    """

    rate: int = 2_000
    filling: int = 25
    first: int = 20
    every: int = 60
    measured: int = 100


SHORT = Scale(rate=200, filling=5, first=5, every=20, measured=40)


@dataclass(frozen=True)
class Turn:
    """What came out of a run, and how long each of its moves took."""

    seen: Interval
    moves: list[float]


def section(spark: SparkSession, short: bool, target: Path) -> list[str]:
    scale = SHORT if short else Scale()
    staying, moving = (turn(spark, moves, scale) for moves in (False, True))
    took = ", ".join(f"{seconds:.1f} s" for seconds in moving.moves)
    return [
        "## Back and forth",
        "",
        f"A join with windows of {WINDOW} s moves between two sites every {scale.every} s (figure 36 of the D-CAPE "
        f"paper). Two streams bring {scale.rate:,} rows a second each, at the pace of the clock; every row has one "
        f"result. Measured for {scale.measured} s each. The moves took {took}. Every result came, and came once.",
        "",
        "| join | results a second | of staying | latency, s | slowest batch, s | longest time without a result, s |",
        "|---|---|---|---|---|---|",
        *(
            f"| {name} | {found.seen.rate:,.0f} | {found.seen.rate / staying.seen.rate:.3f} | "
            f"{found.seen.latency:.2f} | {found.seen.highest:.2f} | {found.seen.pause:.2f} |"
            for name, found in (("stays", staying), ("moves", moving))
        ),
    ]


def turn(spark: SparkSession, moves: bool, scale: Scale) -> Turn:
    """A run of the join, which moves or stays."""
    with running(spark, SITES, scale.rate, WINDOW) as (query, seen):
        begin = time.time() + scale.filling
        end = begin + scale.measured
        moment, number = begin + scale.first, 0
        while moves and moment < end:
            wait(query, moment)
            query.move("s0 ⋈ s1", ("paris", "lyon")[number % 2])
            moment, number = moment + scale.every, number + 1
        wait(query, end)
        query.await_change()
        took = [move.seconds for move in query.history()]
        # Results that are late are counted where they are missing: the last of the interval must have come.
        wait(query, time.time() + 5)
    return Turn(seen.between(begin, end), took)
