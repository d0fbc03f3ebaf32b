"""The benchmark's joins as a user of Spark would write them: chains of Spark's own stream-stream joins.

Only one event-time column may be left after each join, so the others become integers, which the conditions on the times
of later streams use. Columns are named by their stream: `auctions_id` is the column `id` of `auctions`.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from benchmarks.workload import SECOND, NexmarkJoin, Workload

Streams = dict[str, DataFrame]


def on_one_key(workload: Workload, streams: Streams) -> DataFrame:
    names = list(streams)
    joined = streams[names[0]]
    for name in names[1:]:
        joined = _join(workload, joined, streams[name], names[0], name, F.col(f"{names[0]}_k") == F.col(f"{name}_k"))
    return joined


def on_two_keys(workload: Workload, streams: Streams) -> DataFrame:
    joined = _join(workload, streams["b"], streams["a"], "b", "a", F.col("b_x") == F.col("a_x"))
    return _join(workload, joined, streams["c"], "b", "c", F.col("b_y") == F.col("c_y"))


def on_a_band(workload: Workload, streams: Streams) -> DataFrame:
    """Spark joins streams only by equality: values go into cells of width 3, those of `b` also into both neighbours."""
    left = streams["a"].withColumn("a_cell", F.floor(F.col("a_x") / 3))
    right = streams["b"].withColumn("b_cell", F.explode(F.array(*(F.floor(F.col("b_x") / 3) + i for i in (-1, 0, 1)))))
    near = (F.col("a_cell") == F.col("b_cell")) & (F.abs(F.col("a_x") - F.col("b_x")) <= 1)
    return _join(workload, left, right, "a", "b", near)


def _join(workload: Workload, joined: DataFrame, other: DataFrame, timed: str, name: str, on: Any) -> DataFrame:
    """Join one more stream, called `name`; `timed` is the stream whose event-time column is left in `joined`."""
    span = F.expr(f"INTERVAL {workload.window_seconds} SECONDS")
    joined_time, other_time = F.col(f"{timed}_ts"), F.col(f"{name}_ts")
    # All windows have the same length, so two rows are alive together if their times are less than a window apart.
    overlap = (other_time > joined_time - span) & (other_time < joined_time + span)
    length = workload.window_seconds * SECOND
    for column in joined.columns:
        if column.endswith("_us"):
            overlap &= F.abs(F.unix_micros(other_time) - F.col(column)) < length
    result = joined.join(other, on & overlap)
    return result.withColumn(f"{name}_us", F.unix_micros(other_time)).drop(f"{name}_ts")


def of_nexmark(workload: NexmarkJoin, streams: Streams) -> DataFrame:
    """Few rows first: people with their auctions, then bids. Each result is checked for all three lifetimes."""
    windows = workload.WINDOWS
    sold = F.col("auctions_seller") == F.col("persons_id")
    offers = streams["persons"].join(streams["auctions"], sold & _alive_together(windows, "auctions", "persons"))
    offers = offers.withColumn("persons_us", F.unix_micros("persons_ts")).drop("persons_ts")
    bid = F.unix_micros("bids_ts")
    since_person = bid - F.col("persons_us")
    with_person = (since_person < windows["persons"] * SECOND) & (-since_person < windows["bids"] * SECOND)
    on_offer = F.col("bids_auction") == F.col("auctions_id")
    joined = offers.join(streams["bids"], on_offer & _alive_together(windows, "bids", "auctions") & with_person)
    names = {"persons_id": "person", "auctions_id": "auction", "bids_row": "bid"}
    return joined.select(*(F.col(column).alias(name) for column, name in names.items()))


def _alive_together(windows: dict[str, int], one: str, other: str) -> Column:
    """Whether the lifetimes of two rows overlap: each starts before the other ends."""
    times = {name: F.col(f"{name}_ts") for name in (one, other)}
    ends = {name: times[name] + F.expr(f"INTERVAL {windows[name]} SECONDS") for name in (one, other)}
    return (times[one] < ends[other]) & (times[other] < ends[one])
