"""Sessions on the shared Spark, streams as directories of files, and queries run until their results are complete."""

import json
import os
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import braid
from braid.channels.memory import MemoryChannel, MemoryChannels
from braid.hosts.drafts import DRAFT
from braid.hosts.registry import Registry
from braid.hosts.spark.driver.query import SparkQuery
from braid.hosts.spark.driver.session import Session
from braid.model.statistics import Statistics
from braid.model.stream import Stream
from braid.runtime.sites.deployed import Deployed
from braid.testing.stream_files import random_rows, write_stream

SECOND = 1_000_000
TRIANGLE = braid.Topology.from_links([("paris", "lyon", 0.004), ("lyon", "nice", 0.006), ("paris", "nice", 0.009)])
KNOWN = Statistics(rates={"a": 10, "b": 12, "c": 9}, selectivities={"a.k = b.k": 0.001, "b.k = c.k": 0.001})
SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "k": pa.int64(), "n": pa.int64()})
PAIRS = "SELECT a.n AS an, b.n AS bn FROM a [RANGE 20 SECONDS], b [RANGE 9 SECONDS] WHERE a.k = b.k"
TRIPLES = """SELECT a.n AS an, b.n AS bn, c.n AS cn FROM a [RANGE 12 SECONDS], b [RANGE 9 SECONDS],
             c [RANGE 20 SECONDS] WHERE a.k = b.k AND b.k = c.k"""

Feed = Callable[..., Any]
"""The fixture `feed`: `feed(name, table, rows)` returns a streaming DataFrame of `rows` rows in each micro-batch."""


@pytest.fixture
def session(spark: Any) -> Session:
    opened: Session = braid.Session(spark)
    return opened


@pytest.fixture
def feed(spark: Any, tmp_path: Path) -> Feed:
    """Writes a table as a file stream that brings `rows` rows in each micro-batch; returns its DataFrame."""

    def feed_table(name: str, table: pa.Table, rows: int) -> Any:
        directory = tmp_path / "streams" / name
        write_stream(directory, table, rows)
        return read_files(spark, directory)

    return feed_table


def read_files(spark: Any, directory: Path) -> Any:
    """A streaming DataFrame of the files in a directory, one in each micro-batch."""
    schema = spark.read.parquet(str(directory)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(directory))


def declare(session: Session, feed: Feed, names: str, rows: int = 40) -> dict[str, pa.Table]:
    """Declare streams of `rows` rows in each micro-batch; returns their tables."""
    tables = {name: random_rows(seed) for seed, name in enumerate(names)}
    for name, table in tables.items():
        session.stream(name, feed(name, table, rows), time="ts", lateness="1 second")
    return tables


def run_out(dataframe: Any, tmp_path: Path, *, name: str = "result") -> pa.Table:
    """All results of a streaming DataFrame until its sources are exhausted.

    Called again with the same name, it goes on from the same checkpoint and returns the results of both runs.
    """
    path = tmp_path / name
    writer = dataframe.writeStream.format("parquet").option("path", str(path))
    writer = writer.option("checkpointLocation", str(tmp_path / f"{name}-checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    return written(path)


def written(path: Path) -> pa.Table:
    """The rows that a file sink has committed. Files of attempts that failed do not count."""
    log = (line for entry in path.glob("_spark_metadata/[0-9]*") for line in entry.read_text().splitlines()[1:])
    files = {unquote(urlparse(json.loads(line)["path"]).path) for line in log}
    return pa.concat_tables([pq.read_table(file) for file in sorted(files)]) if files else pa.table({})


def without_time(result: pa.Table) -> pa.Table:
    """A result without the event-time column that Spark queries add, if it has one."""
    return result.select([name for name in result.column_names if name != "event_time"])


def reported(query: SparkQuery, total: dict[str, int]) -> dict[str, Any]:
    """The progress of a query once its totals are as expected: reports come a moment after results."""
    for _ in range(600):
        progress = query.progress()
        if progress is not None and total.items() <= progress["total"].items():
            break
        time.sleep(0.1)
    assert progress is not None
    return progress


class Streams:
    """Three streams that come in three parts."""

    def __init__(self, feed: Feed, directory: Path, whole: dict[str, pa.Table] | None = None) -> None:
        self._directory = directory
        self._whole = whole or {name: random_rows(seed, 60) for seed, name in enumerate("abc")}
        self._size = min(table.num_rows for table in self._whole.values()) // 3
        self._parts = 1
        self.frames = {name: feed(name, self._part(name, 0), self._size) for name in self._whole}

    def _part(self, name: str, number: int) -> pa.Table:
        return self._whole[name].slice(self._size * number, self._size)

    @property
    def rows(self) -> dict[str, pa.Table]:
        """What has come so far."""
        return {name: table.slice(0, self._size * self._parts) for name, table in self._whole.items()}

    def more(self) -> None:
        for name in self._whole:
            unfinished = self._directory / f"{name}.unfinished"
            pq.write_table(self._part(name, self._parts), unfinished)
            os.utime(unfinished, (1_000_000_000 + self._parts,) * 2)
            unfinished.rename(self._directory / name / f"{self._parts:05d}.parquet")
        self._parts += 1


@pytest.fixture
def channels() -> MemoryChannels:
    return MemoryChannels()


@pytest.fixture
def registry(channels: MemoryChannels) -> Registry:
    return declared(channels)


def declared(channels: MemoryChannels) -> Registry:
    """The announcements of a network with three streams."""
    registry = Registry(TRIANGLE, channels)
    for name, site in {"a": "paris", "b": "lyon", "c": "nice"}.items():
        registry.declare(site, Stream(name, SCHEMA, "ts"))
    return registry


def before_write(patch: pytest.MonkeyPatch, number: int, happens: Callable[[], object]) -> None:
    """Something happens once, just before the first program that writes to channels does so for the n-th time."""
    writes = count()

    def counted(write: Callable[..., Any]) -> Callable[..., Any]:
        def written(*arguments: Any) -> Any:
            if next(writes) == number:
                patch.undo()
                happens()
            return write(*arguments)

        return written

    documents = ["announce", "announce_new", "withdraw"]
    for owner, names in {MemoryChannels: ["remove", *documents], MemoryChannel: ["subscribe", "unsubscribe"]}.items():
        for name in names:
            patch.setattr(owner, name, counted(getattr(owner, name)))


def check_readers(registry: Registry, channels: MemoryChannels) -> None:
    """All that is deployed reads channels that are there, and nobody else does."""
    deployments = registry.deployments().values()
    announced = {subscription for deployed in deployments for subscription in deployed.subscriptions()}
    published = frozenset().union(*(deployed.published for deployed in deployments))
    assert {channel for channel, _ in announced} <= published
    assert {(name, reader) for name in published for reader in channels.open(name).released()} == announced
    assert not channels.announced(DRAFT)


def reuses(deployed: Deployed) -> bool:
    return "(reused)" in deployed.explanation
