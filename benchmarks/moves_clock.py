"""Joins over streams that bring rows at the pace of the clock, and what users see of their results."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from pyspark.sql import DataFrame, SparkSession

import braid
from benchmarks.sites import LINKS
from braid.adapt.controller import Policy
from braid.hosts.spark.driver.deployed_query import DeployedQuery

TOPOLOGY = braid.Topology.from_links(LINKS)
SINK = "lyon"


@dataclass(frozen=True)
class Interval:
    """The median seconds from a row to its result, that of the slowest batch, and the longest time without a result.

    `rate` is the number of results in a second of the clock.
    """

    latency: float
    highest: float
    pause: float
    rate: float


@dataclass
class Seen:
    """What came out of a query: the moment of each batch with results, and the values and latencies of its rows."""

    batches: list[tuple[float, list[float]]] = field(default_factory=list)
    values: list[int] = field(default_factory=list)

    def __call__(self, batch: DataFrame, _: int) -> None:
        rows = batch.collect()
        now = time.time()
        if rows:
            self.batches.append((now, [now - row.event_time.timestamp() for row in rows]))
            self.values += [row.v for row in rows]

    def between(self, begin: float, end: float) -> Interval:
        chosen = [(moment, latencies) for moment, latencies in self.batches if begin <= moment < end]
        moments = [begin, *(moment for moment, _ in chosen), end]
        pauses = [later - earlier for earlier, later in pairwise(moments)]
        every = [latency for _, latencies in chosen for latency in latencies]
        highest = max(median(latencies) for _, latencies in chosen)
        return Interval(median(every), highest, max(pauses), len(every) / (end - begin))

    def check(self) -> None:
        """Every value is in one result: none is missing between the first and the last, and none comes twice."""
        if sorted(self.values) != list(range(min(self.values), max(self.values) + 1)):
            raise SystemExit(f"of {len(self.values):,} results some are missing, or come twice")


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
