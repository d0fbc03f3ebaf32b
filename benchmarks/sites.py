"""A join of three streams at one site, at three sites that share one Spark, and at three processes; by kind of channel.

Run by `python -m benchmarks.sites`. All read the same Parquet files and write Parquet, and their results are compared
before a figure is shown. Rates are input rows per second from the first micro-batch to the last result, in a Java that
has run the same query before.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console

import braid
from benchmarks.workload import Workload, one_key, uniform
from braid.hosts.spark.driver.local_spark import local_spark
from braid.testing.nats_server import NatsServer

SITES = {"s0": "paris", "s1": "lyon", "s2": "nice"}
TOPOLOGY = braid.Topology.from_links([("paris", "lyon", 0.004), ("lyon", "nice", 0.006), ("paris", "nice", 0.009)])
SINK = "lyon"
WORKLOAD = Workload("3 streams, one key, 5 s windows", *one_key(3, uniform(333_000)), 5, 20, 66_666)
console = Console()


@dataclass(frozen=True)
class Outcome:
    """What a run gave: rows per second, the results it wrote, and the bytes that crossed links."""

    rate: float
    results: Path
    crossed: int = 0


def write_streams(workload: Workload, directory: Path) -> int:
    """A file for each second of each stream; returns the number of rows."""
    rows = 0
    for second, batch in enumerate(workload.batches()):
        for stream, content in batch.items():
            path = directory / stream
            path.mkdir(parents=True, exist_ok=True)
            pq.write_table(_table(content), path / f"{second:05d}.parquet")
            rows += content.num_rows
    return rows


def _table(batch: Any) -> Any:
    import pyarrow as pa

    return pa.Table.from_batches([batch])


def read(spark: SparkSession, directory: Path, stream: str) -> DataFrame:
    schema = spark.read.parquet(str(directory / stream)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(directory / stream))


def at_one_site(spark: SparkSession, streams: Path, place: Path, rows: int) -> Outcome:
    session = braid.Session(spark, adapt=False)
    for stream in SITES:
        session.stream(stream, read(spark, streams, stream))
    query = session.sql(WORKLOAD.text)
    started = time.perf_counter()
    writer = query.dataframe.writeStream.format("parquet").option("path", str(place / "results"))
    writer.option("checkpointLocation", str(place / "checkpoint")).trigger(availableNow=True).start().awaitTermination()
    return Outcome(rows / (time.perf_counter() - started), place / "results")


def at_three_sites(
    spark: SparkSession, streams: Path, place: Path, rows: int, channels: dict[str, Any] | None = None
) -> Outcome:
    network = braid.Network(TOPOLOGY, directory=place / "network", channels=channels, adapt=False)
    for stream, site in SITES.items():
        network.site(site, spark).stream(stream, read(spark, streams, stream))
    started = time.perf_counter()
    query = network.deploy(WORKLOAD.text, sink=SINK)
    writer = query.dataframe.writeStream.format("parquet").option("path", str(place / "results"))
    results = writer.option("checkpointLocation", str(place / "checkpoint")).start()
    query.process_available()
    results.processAllAvailable()
    rate = rows / (time.perf_counter() - started)
    results.stop()
    crossed = sum(traffic.bytes for traffic in query.traffic().values())
    network.stop()
    return Outcome(rate, place / "results", crossed)


@contextmanager
def nats(directory: Path) -> Iterator[dict[str, Any]]:
    with NatsServer(directory / "nats") as server:
        yield {"kind": "nats", "url": server.url}


def check_same(streams: Path, outcomes: dict[str, Outcome]) -> int:
    """The number of results, which must be those of DuckDB joining all input offline."""
    connection = duckdb.connect()
    for stream in SITES:
        connection.execute(f"CREATE VIEW {stream} AS SELECT * FROM '{streams}/{stream}/*.parquet'")
    keys = ", ".join(f"{stream}_row" for stream in SITES)
    summary = f"SELECT count(*), sum(hash({keys})) FROM"
    expected = connection.execute(f"{summary} ({WORKLOAD.offline})").fetchone()
    for name, outcome in outcomes.items():
        found = connection.execute(f"{summary} '{outcome.results}/*.parquet'").fetchone()
        if found != expected:
            raise SystemExit(f"{name} gave {found}, not {expected}")
    assert expected is not None
    return int(expected[0])


def main(arguments: list[str]) -> None:
    spark = local_spark(settings={"spark.driver.memory": "4g"}, log=Path(tempfile.gettempdir()) / "sites.log")
    with tempfile.TemporaryDirectory() as name, nats(Path(name)) as servers:
        directory = Path(name)
        streams = directory / "streams"
        rows = write_streams(WORKLOAD, streams)
        runs: dict[str, Callable[[Path], Outcome]] = {
            "one site": lambda place: at_one_site(spark, streams, place, rows),
            "three sites, directory": lambda place: at_three_sites(spark, streams, place, rows),
            "three sites, nats": lambda place: at_three_sites(spark, streams, place, rows, servers),
        }
        chosen = {run: call for run, call in runs.items() if not arguments or any(word in run for word in arguments)}
        outcomes: dict[str, Outcome] = {}
        for turn in range(2):
            for run, call in chosen.items():
                with console.status(f"{run}, turn {turn + 1}"):
                    outcomes[run] = call(directory / f"{turn} {run}".replace(" ", "-").replace(",", ""))
                console.print(f"{run}: {outcomes[run].rate:,.0f} rows/s, {outcomes[run].crossed:,} bytes crossed")
        console.print(f"{check_same(streams, outcomes):,} results each")


if __name__ == "__main__":
    main(sys.argv[1:])
