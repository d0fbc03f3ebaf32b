"""Joins over streams that bring rows at the pace of the clock, and what users see of their results."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import braid
from benchmarks.sites import LINKS
from braid.adapt.controller import Policy
from braid.hosts.spark.driver.deployed_query import DeployedQuery

TOPOLOGY = braid.Topology.from_links(LINKS)
SINK = "lyon"

Numbers = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Interval:
    """The median seconds from a row to its result, that of the slowest batch, and the longest time without a result.

    `last` is the median of the last batch, so how far results are behind at the end; `empty` is the number of batches
    without a result, `rate` the number of results in a second of the clock.
    """

    latency: float
    highest: float
    last: float
    pause: float
    empty: int
    rate: float


@dataclass
class Seen:
    """What came out of a query: the moment of each batch with results, and the values and latencies of its rows."""

    batches: list[tuple[float, Numbers]] = field(default_factory=list)
    values: list[Numbers] = field(default_factory=list)
    empty: list[float] = field(default_factory=list)
    """The moments of batches without a result."""

    def __call__(self, batch: DataFrame, _: int) -> None:
        rows = batch.toArrow()
        now = time.time()
        if not rows.num_rows:
            self.empty.append(now)
        else:
            times = rows.column("event_time").cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_numpy()
            self.batches.append((now, now - times / 1e6))
            self.values.append(rows.column("v").to_numpy())

    def between(self, begin: float, end: float) -> Interval:
        chosen = [(moment, latencies) for moment, latencies in self.batches if begin <= moment < end]
        moments = [begin, *(moment for moment, _ in chosen), end]
        pause = max(later - earlier for earlier, later in pairwise(moments))
        every = np.concatenate([latencies for _, latencies in chosen])
        medians = [float(np.median(latencies)) for _, latencies in chosen]
        empty = sum(begin <= moment < end for moment in self.empty)
        return Interval(float(np.median(every)), max(medians), medians[-1], pause, empty, len(every) / (end - begin))

    def check(self) -> None:
        """Every value is in one result: none is missing between the first and the last, and none comes twice."""
        values = np.sort(np.concatenate(self.values))
        if not np.array_equal(values, np.arange(values[0], values[-1] + 1)):
            raise SystemExit(f"of {len(values):,} results some are missing, or come twice")


@contextmanager
def running(
    spark: SparkSession, sites: Mapping[str, str], rate: int, window: int, adapt: bool | Policy = False
) -> Iterator[tuple[DeployedQuery, Seen]]:
    """A join of streams that each bring so many rows a second, from its first results on. At the end it is checked."""
    network = braid.Network(TOPOLOGY, adapt=adapt)
    clock = spark.readStream.format("rate").option("rowsPerSecond", rate).load()
    for name, site in sites.items():
        network.site(site, spark).stream(name, clock.selectExpr("timestamp AS ts", "value AS k"))
    first, *others = sites
    sources = ", ".join(f"{name} [RANGE {window} SECONDS]" for name in sites)
    condition = " AND ".join(f"{first}.k = {name}.k" for name in others)
    query = network.deploy(f"SELECT {first}.k AS v FROM {sources} WHERE {condition}", sink=SINK, shards=2)
    query.pin()
    seen = Seen()
    results = query.dataframe.writeStream.foreachBatch(seen).start()
    try:
        while not seen.batches:
            query.check()
            time.sleep(0.1)
        yield query, seen
    finally:
        results.stop()
        network.stop()
    seen.check()


def known(sites: Mapping[str, str], rate: int, window: int) -> braid.Statistics:
    """The statistics of such a join: each row has one partner in each window."""
    first, *others = sites
    pairs = {f"{first}.k = {name}.k": 1 / (window * rate) for name in others}
    return braid.Statistics(rates=dict.fromkeys(sites, float(rate)), selectivities=pairs)


def wait(query: DeployedQuery, until: float) -> None:
    """Wait until a moment of the clock."""
    while (left := until - time.time()) > 0:
        query.check()
        time.sleep(min(left, 0.5))
