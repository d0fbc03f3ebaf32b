"""A plan change under load: how late results are before, during and after it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import matplotlib
import numpy as np
from pyspark.sql import SparkSession

from benchmarks.moves_clock import Interval, Seen, known, running
from braid.adapt.controller import Policy

SITES = {"s0": "paris", "s1": "lyon", "s2": "nice", "s3": "paris"}
WINDOW = 10
SETTLING = 5
"""The seconds after a change that still count to it: results wait where the old plan has just ended."""

GOAL = 1.5
"""How many times the latency of before results may have during a change."""

EAGER = Policy(threshold=0.0, horizon=float("inf"))
"""Changes the plan as soon as another one is cheaper."""


@dataclass(frozen=True)
class UnderLoad:
    """A plan change of a query whose streams go on: what came out before it, during it and after it."""

    how: str
    before: Interval
    during: Interval
    after: Interval
    seen: Seen
    asked: float
    ended: float

    @property
    def slower(self) -> float:
        """How many times the latency of before results have during the change."""
        return self.during.latency / self.before.latency

    @property
    def slowest(self) -> float:
        """The same of the slowest batch."""
        return self.during.highest / self.before.latency


def section(spark: SparkSession, short: bool, target: Path) -> list[str]:
    rate, steady = (100, 10) if short else (500, 30)
    loads = [under_load(spark, how, rate, steady) for how in ("by hand", "by itself")]
    _draw(loads, steady, target / "moves.png")
    lines = [
        "## Under load",
        "",
        f"A join of four streams at three sites that share one Spark, {4 * rate:,} rows a second, windows of {WINDOW} "
        "s. The plan changes from everything at the sink to the cheapest one. Every result came, and came once.",
        "",
        f"Latencies are medians of rows, until {SETTLING} s after the change; the slowest batch is that with the "
        "highest median.",
        "",
        "| change | seconds | latency before | during | after | during / before | slowest batch / before | longest "
        "time without a result before | during | batches without a result |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for load in loads:
        latencies = [interval.latency for interval in (load.before, load.during, load.after)]
        shown = " | ".join(f"{latency:.2f}" for latency in latencies)
        lines.append(
            f"| {load.how} | {load.ended - load.asked:.1f} | {shown} | {load.slower:.2f} | {load.slowest:.2f} | "
            f"{load.before.pause:.2f} | {load.during.pause:.2f} | {load.during.empty} |"
        )
    verdicts = " and ".join(f"{'reached' if load.slower <= GOAL else 'missed'} {load.how}" for load in loads)
    goal = f"The goal is {GOAL} times the latency of before at the median: it is {verdicts}."
    return [*lines, "", goal, "", "![Latency over time](moves.png)"]


def under_load(spark: SparkSession, how: str, rate: int, steady: int) -> UnderLoad:
    """A join of four streams at three sites, which changes its plan by hand or by itself."""
    with running(spark, SITES, rate, WINDOW, EAGER if how == "by itself" else False) as (query, seen):
        time.sleep(2 * steady)
        asked = time.time()
        if how == "by itself":
            query.unpin()
            while not query.history():
                query.check()
                time.sleep(0.1)
            query.pin()
        else:
            query.replan(planner="exact", statistics=known(SITES, rate, WINDOW))
            query.await_change()
        (move, *_) = query.history()
        time.sleep(steady)
    begin, end = max(asked, move.asked), move.ended
    # The first batches after a start have waited for Spark, so the last ones before the change are the steady state.
    before = seen.between(begin - steady, begin)
    during, after = seen.between(begin, end + SETTLING), seen.between(end + SETTLING, end + steady)
    return UnderLoad(how, before, during, after, seen, begin, end)


def _draw(loads: list[UnderLoad], steady: int, path: Path) -> None:
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, all_axes = pyplot.subplots(len(loads), 1, figsize=(8, 5), layout="constrained", squeeze=False)
    for axes, load in zip(all_axes[:, 0], loads, strict=True):
        shown = [(moment - load.asked, float(np.median(found))) for moment, found in load.seen.batches]
        shown = [(moment, latency) for moment, latency in shown if moment > -steady]
        axes.plot(*zip(*shown, strict=True), marker=".")
        axes.axvspan(0, load.ended - load.asked, alpha=0.2, label=f"the plan changes, {load.how}")
        axes.set(xlabel="seconds", ylabel="latency, s", ylim=(0, None))
        axes.legend()
    figure.savefig(path, dpi=110, metadata={"Software": None})
