"""A join of three streams at one site, at three sites that share one Spark, and at three processes; by kind of channel.

Run by `python -m benchmarks.sites`, which writes a page and a plot to docs/results. All read the same Parquet files and
write Parquet, and their results are compared with DuckDB's before a figure is shown. Rates are input rows per second
from the first micro-batch to the last result, in a Java that has run the same query before; processes are new.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import unquote, urlparse

import duckdb
import matplotlib
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console

import braid
from benchmarks.workload import Workload, one_key, uniform
from braid.hosts.spark.driver.local_spark import local_spark
from braid.testing.nats_server import NatsServer

RESULTS = Path(__file__).parent.parent / "docs" / "results"
SITES = {"s0": "paris", "s1": "lyon", "s2": "nice"}
LINKS = [("paris", "lyon", 0.004), ("lyon", "nice", 0.006), ("paris", "nice", 0.009)]
SINK = "lyon"
WORKLOAD = Workload("3 streams, one key, 5 s windows", *one_key(3, uniform(333_000)), 5, 20, 66_666)

PAIR = """SELECT a.value AS v FROM a [RANGE 10 SECONDS], b [RANGE 10 SECONDS] WHERE a.value = b.value"""
"""The query whose latency is measured: each row of one stream joins one of the other."""

LATENCY_SECONDS = 20
console = Console()


@dataclass(frozen=True)
class Outcome:
    """What a run gave: rows per second, where it wrote its results, and the bytes that crossed links."""

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
            pq.write_table(pa.Table.from_batches([content]), path / f"{second:05d}.parquet")
            rows += content.num_rows
    return rows


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
    topology = braid.Topology.from_links(LINKS)
    network = braid.Network(topology, directory=place / "network", channels=channels, adapt=False)
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


def at_three_processes(
    streams: Path, place: Path, rows: int, expected: int, channels: dict[str, Any] | None = None
) -> Outcome:
    """Every site is a process of `braid network`. Their time begins when the first site takes its first rows."""
    place.mkdir()
    content = {
        "topology": {"links": [list(link) for link in LINKS]},
        "directory": "state",
        "streams": {
            stream: {
                "site": site,
                "format": "parquet",
                "path": str(streams / stream),
                "options": {"maxFilesPerTrigger": 1},
            }
            for stream, site in SITES.items()
        },
        "queries": {
            "joined": {
                "sql": WORKLOAD.text,
                "sink": SINK,
                "shards": 2,
                "output": {"format": "parquet", "path": "results"},
            }
        },
        **({} if channels is None else {"channels": channels}),
    }
    file = place / "network.yaml"
    file.write_text(yaml.safe_dump(content))
    command = [sys.executable, "-m", "braid", "network", str(file)]
    with (place / "log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        _wait(process, place, lambda: any(place.glob("state/sites/*/joined/offsets/0")))
        started = time.perf_counter()
        _wait(process, place, lambda: _rows_written(place / "results") >= expected)
        return Outcome(rows / (time.perf_counter() - started), place / "results")
    finally:
        process.terminate()
        process.wait()


def _wait(process: subprocess.Popen[bytes], place: Path, done: Callable[[], bool]) -> None:
    while not done():
        if process.poll() is not None:
            raise SystemExit(f"the network has ended:\n{(place / 'log').read_text()[-2_000:]}")
        time.sleep(0.1)


def _rows_written(results: Path) -> int:
    """The rows of the files that the sink has committed; it may be writing others."""
    log = (line for entry in results.glob("_spark_metadata/[0-9]*") for line in entry.read_text().splitlines()[1:])
    files = {unquote(urlparse(json.loads(line)["path"]).path) for line in log}
    return sum(pq.read_metadata(file).num_rows for file in files)


def latency(spark: SparkSession, hops: int) -> float:
    """The median seconds from the time of a row to its result, in micro-batches that follow each other."""
    rate = spark.readStream.format("rate").option("rowsPerSecond", 100).load()
    frames = {name: rate.selectExpr("timestamp AS ts", "value") for name in "ab"}
    network = None
    if hops == 0:
        session = braid.Session(spark, adapt=False)
        for name, frame in frames.items():
            session.stream(name, frame)
        dataframe = session.sql(PAIR).dataframe
    else:
        network = braid.Network(braid.Topology.from_links(LINKS), adapt=False)
        for name, site in zip(frames, ("paris", "nice"), strict=True):
            network.site(site, spark).stream(name, frames[name])
        network.site(SINK, spark)
        dataframe = network.deploy(PAIR, sink=SINK).dataframe
    seconds: list[float] = []

    def note(batch: DataFrame, number: int) -> None:
        now = time.time()
        seconds.extend(now - row.event_time.timestamp() for row in batch.collect())

    running = dataframe.writeStream.foreachBatch(note).start()
    time.sleep(LATENCY_SECONDS)
    running.stop()
    if network is not None:
        network.stop()
    return median(seconds[len(seconds) // 2 :])


@contextmanager
def nats(directory: Path) -> Iterator[dict[str, Any]]:
    with NatsServer(directory / "nats") as server:
        yield {"kind": "nats", "url": server.url}


def expected_results(streams: Path) -> tuple[Any, ...]:
    """How many results there are, and a sum of their hashes."""
    connection = duckdb.connect()
    for stream in SITES:
        connection.execute(f"CREATE VIEW {stream} AS SELECT * FROM '{streams}/{stream}/*.parquet'")
    return connection.execute(f"{_summary()} ({WORKLOAD.offline})").fetchone() or ()


def check_same(outcomes: dict[str, Outcome], expected: tuple[Any, ...]) -> None:
    for name, outcome in outcomes.items():
        found = duckdb.execute(f"{_summary()} '{outcome.results}/*.parquet'").fetchone()
        if found != expected:
            raise SystemExit(f"{name} gave {found}, not {expected}")


def _summary() -> str:
    return f"SELECT count(*), sum(hash({', '.join(f'{stream}_row' for stream in SITES)})) FROM"


def write_page(outcomes: dict[str, Outcome], latencies: dict[str, float], rows: int, results: int) -> None:
    one = outcomes["one site"].rate
    lines = [
        "# One site and several",
        "",
        f"{WORKLOAD.name}: {rows:,} rows, {results:,} results. `python -m benchmarks.sites`, two cores for everything.",
        "",
        "| where | rows a second | of one site | MB over links |",
        "|---|---|---|---|",
    ]
    for name, outcome in outcomes.items():
        crossed = f"{outcome.crossed / 1e6:.1f}" if outcome.crossed else ""
        lines.append(f"| {name} | {outcome.rate:,.0f} | {outcome.rate / one:.2f} | {crossed} |")
    lines += ["", "![Rows a second](sites.png)", "", "| small batches | median seconds from a row to its result |"]
    lines += ["|---|---|", *(f"| {name} | {seconds:.2f} |" for name, seconds in latencies.items())]
    (RESULTS / "sites.md").write_text("\n".join(lines) + "\n")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 3), layout="constrained")
    axes.barh(list(outcomes)[::-1], [outcome.rate for outcome in outcomes.values()][::-1])
    axes.set_xlabel("rows a second")
    figure.savefig(RESULTS / "sites.png", dpi=110, metadata={"Software": None})


def main(arguments: list[str]) -> None:
    spark = local_spark(settings={"spark.driver.memory": "4g"}, log=Path(tempfile.gettempdir()) / "sites.log")
    with tempfile.TemporaryDirectory() as name, nats(Path(name)) as servers:
        directory = Path(name)
        streams = directory / "streams"
        rows = write_streams(WORKLOAD, streams)
        expected = expected_results(streams)
        runs: dict[str, Callable[[Path], Outcome]] = {
            "one site": lambda place: at_one_site(spark, streams, place, rows),
            "three sites on one Spark, directory": lambda place: at_three_sites(spark, streams, place, rows),
            "three sites on one Spark, NATS": lambda place: at_three_sites(
                spark, streams, place, rows, {**servers, "prefix": place.name}
            ),
            "three processes, directory": lambda place: at_three_processes(streams, place, rows, expected[0]),
            "three processes, NATS": lambda place: at_three_processes(
                streams, place, rows, expected[0], {**servers, "prefix": place.name}
            ),
        }
        chosen = {run: call for run, call in runs.items() if not arguments or any(word in run for word in arguments)}
        outcomes: dict[str, Outcome] = {}
        for turn in range(2):
            for run, call in chosen.items():
                if turn == 0 and "processes" in run:
                    continue  # Processes are new each time.
                place = directory / f"{turn}-{list(runs).index(run)}"
                with console.status(f"{run}, turn {turn + 1}"):
                    outcomes[run] = call(place)
                console.print(f"{run}: {outcomes[run].rate:,.0f} rows/s, {outcomes[run].crossed:,} bytes crossed")
        check_same(outcomes, expected)
        if arguments:
            return
        latencies = {"one site": latency(spark, 0), "two sites and a sink": latency(spark, 1)}
        console.print(latencies)
        write_page({run: outcomes[run] for run in runs}, latencies, rows, expected[0])


if __name__ == "__main__":
    main(sys.argv[1:])
