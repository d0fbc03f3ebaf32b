"""A join that moves back and forth between two sites every minute (figure 36 of the D-CAPE paper).

Rows come at the pace of the clock: at a rate far below what the machine can take, as in the paper, and near to that.
Below it, the throughput is that of the input, unless a move loses or delays something. So how far results are behind at
the end is measured, too.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
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

OVERLOAD = 200_000
"""Rows a second of each stream that are more than the machine can take."""
OVERLOADED = 60
"""The seconds that it gets them for, of which the second half counts."""
LOAD = 0.8
"""The share of what the machine can take that is near to that."""


@dataclass(frozen=True)
class Turn:
    """What came out of a run, and how long each of its moves took."""

    seen: Interval
    moves: list[float]


def section(spark: SparkSession, short: bool, target: Path) -> list[str]:
    scale = SHORT if short else Scale()
    return [
        "## Back and forth",
        "",
        f"A join with windows of {WINDOW} s moves between two sites every {scale.every} s (figure 36 of the D-CAPE "
        f"paper). Two streams bring {scale.rate:,} rows a second each, at the pace of the clock; every row has one "
        f"result. Measured for {scale.measured} s each. {_compared(spark, scale)}",
    ]


def section_near_capacity(spark: SparkSession, short: bool, target: Path) -> list[str]:
    too_much, seconds = (2_000, 10) if short else (OVERLOAD, OVERLOADED)
    capacity = overloaded(spark, too_much, seconds)
    scale = replace(SHORT if short else Scale(), rate=round(LOAD * capacity))
    return [
        "## Back and forth near capacity",
        "",
        f"The same join, with nearly as much as the machine can take. When the streams bring {too_much:,} rows a "
        f"second each, there are {capacity:,.0f} results a second. Here they bring {LOAD:.0%} of these, "
        f"{scale.rate:,} rows a second each. Measured for {scale.measured} s each. {_compared(spark, scale)}",
    ]


def _compared(spark: SparkSession, scale: Scale) -> str:
    """The join that stays and the one that moves, in words and as a table."""
    staying, moving = (turn(spark, moves, scale) for moves in (False, True))
    took = ", ".join(f"{seconds:.1f} s" for seconds in moving.moves)
    lines = [
        f"The moves took {took}. The join that moves gives {moving.seen.rate / staying.seen.rate:.1%} of the results "
        "of the one that stays. Every result came, and came once.",
        "",
        "| join | results a second | of staying | latency, s | slowest batch, s | behind at the end, s | longest time "
        "without a result, s |",
        "|---|---|---|---|---|---|---|",
        *(
            f"| {name} | {found.rate:,.0f} | {found.rate / staying.seen.rate:.3f} | {found.latency:.2f} | "
            f"{found.highest:.2f} | {found.last:.2f} | {found.pause:.2f} |"
            for name, found in (("stays", staying.seen), ("moves", moving.seen))
        ),
    ]
    return "\n".join(lines)


def overloaded(spark: SparkSession, rate: int, seconds: int) -> float:
    """The results a second of a join that stays and gets more rows than it can take."""
    with running(spark, SITES, rate, WINDOW) as (query, seen):
        begin = time.time()
        wait(query, begin + seconds)
    return seen.between(begin + seconds / 2, begin + seconds).rate


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
