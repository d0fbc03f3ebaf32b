"""A join of three streams at one site, at three sites that share one Spark, and at three processes; by kind of channel.

Run by `python -m benchmarks.sites`, which writes a page and plots to docs/results. All read the same Parquet files and
write Parquet, and their results are compared with DuckDB's before a figure is shown. Rates are input rows per second
from the first micro-batch to the last result, in a Java that has run the same query before; processes are new.

Latency and memory are those of streams that come all the time. What deployments ship beside shipping everything is
simulated. `--short` tries everything on little data, and prints the page instead of writing it.
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
from benchmarks import sites_links
from benchmarks.memory import memory_now
from benchmarks.workload import Workload, one_key, uniform
from braid.channels.kinds import open_channels
from braid.files.network import load_network
from braid.hosts.network_status import link_traffic
from braid.hosts.registry import Registry
from braid.hosts.spark.driver.local_spark import local_spark
from braid.testing.nats_server import NatsServer

RESULTS = Path(__file__).parent.parent / "docs" / "results"
SITES = {"s0": "paris", "s1": "lyon", "s2": "nice"}
LINKS = [("paris", "lyon", 0.004), ("lyon", "nice", 0.006), ("paris", "nice", 0.009)]
SINK = "lyon"


PAIR = """SELECT a.value AS v FROM a [RANGE 10 SECONDS], b [RANGE 10 SECONDS] WHERE a.value = b.value"""
"""The query whose latency is measured: each row of one stream joins one of the other."""

MEMORY = """SELECT a.value AS v FROM a [RANGE 10 SECONDS], b [RANGE 10 SECONDS], c [RANGE 10 SECONDS]
WHERE a.value = b.value AND b.value = c.value"""
"""The query that runs for minutes while memory is measured."""

console = Console()


@dataclass(frozen=True)
class Scale:
    """How much is measured: rows per second of event time and how many seconds; seconds of latency and of memory."""

    rows: int
    seconds: int
    latency: int
    memory: int
    minutes: int

    @property
    def workload(self) -> Workload:
        return Workload(
            "3 streams, one key, 5 s windows", *one_key(3, uniform(5 * self.rows)), 5, self.seconds, self.rows
        )


FULL = Scale(66_666, 20, latency=30, memory=600, minutes=60)
SHORT = Scale(5_000, 4, latency=10, memory=20, minutes=5)


@dataclass(frozen=True)
class Outcome:
    """What a run gave: rows per second, where it wrote its results, and the bytes that crossed links."""

    rate: float
    results: Path
    crossed: int = 0


@dataclass(frozen=True)
class Input:
    """Streams in files, the query over them, and its results: how many there are, and a sum of their hashes."""

    workload: Workload
    streams: Path
    rows: int
    expected: tuple[Any, ...]

    @classmethod
    def written(cls, workload: Workload, directory: Path) -> Input:
        return cls(workload, directory, write_streams(workload, directory), expected_results(workload, directory))


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


def at_one_site(spark: SparkSession, given: Input, place: Path) -> Outcome:
    session = braid.Session(spark, adapt=False)
    for stream in SITES:
        session.stream(stream, read(spark, given.streams, stream))
    query = session.sql(given.workload.text)
    started = time.perf_counter()
    writer = query.dataframe.writeStream.format("parquet").option("path", str(place / "results"))
    writer.option("checkpointLocation", str(place / "checkpoint")).trigger(availableNow=True).start().awaitTermination()
    return Outcome(given.rows / (time.perf_counter() - started), place / "results")


def at_three_sites(spark: SparkSession, given: Input, place: Path, channels: dict[str, Any] | None = None) -> Outcome:
    topology = braid.Topology.from_links(LINKS)
    network = braid.Network(topology, directory=place / "network", channels=channels, adapt=False)
    for stream, site in SITES.items():
        network.site(site, spark).stream(stream, read(spark, given.streams, stream))
    started = time.perf_counter()
    query = network.deploy(given.workload.text, sink=SINK)
    writer = query.dataframe.writeStream.format("parquet").option("path", str(place / "results"))
    results = writer.option("checkpointLocation", str(place / "checkpoint")).start()
    query.process_available()
    results.processAllAvailable()
    rate = given.rows / (time.perf_counter() - started)
    results.stop()
    crossed = sum(traffic.bytes for traffic in query.traffic().values())
    network.stop()
    return Outcome(rate, place / "results", crossed)


def at_three_processes(given: Input, place: Path, channels: dict[str, Any] | None = None) -> Outcome:
    """Every site is a process of `braid network`. Their time begins when the first site takes its first rows."""
    place.mkdir()
    content = {
        "topology": {"links": [list(link) for link in LINKS]},
        "directory": "state",
        "streams": {
            stream: {
                "site": site,
                "format": "parquet",
                "path": str(given.streams / stream),
                "options": {"maxFilesPerTrigger": 1},
            }
            for stream, site in SITES.items()
        },
        "queries": {
            "joined": {
                "sql": given.workload.text,
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
        _wait(process, place, lambda: any(place.glob("state/sites/*/joined*/offsets/0")))
        started = time.perf_counter()
        _wait(process, place, lambda: _rows_written(place / "results") >= given.expected[0])
        rate = given.rows / (time.perf_counter() - started)
        return Outcome(rate, place / "results", _crossed(file))
    finally:
        process.terminate()
        process.wait()


def _crossed(file: Path) -> int:
    """The bytes that have crossed links."""
    network = load_network(file)
    channels = open_channels(network.channels, network.directory)
    deployed = Registry(network.topology, channels).deployments()["joined"]
    return sum(traffic.bytes for traffic in link_traffic(deployed, network.topology, channels).values())


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


def latency(spark: SparkSession, hops: int, measured_seconds: int) -> float:
    """The median seconds from the time of a row to its result, in micro-batches that follow each other.

    The first half of the results is left out: in the first micro-batches rows have waited for Spark.
    """
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
    while not seconds:
        time.sleep(0.1)
    time.sleep(measured_seconds)
    running.stop()
    if network is not None:
        network.stop()
    return median(seconds[len(seconds) // 2 :])


def memory_over_time(spark: SparkSession, seconds: int) -> list[tuple[float, dict[str, int]]]:
    """The memory of the driver, Java and workers while three sites join streams that come all the time.

    Java takes more from the system than it needs, so what it has in use after a collection is measured, too.
    """
    rate = spark.readStream.format("rate").option("rowsPerSecond", 2_000).load()
    network = braid.Network(braid.Topology.from_links(LINKS), adapt=False, trigger="1 second")
    for name, site in zip("abc", SITES.values(), strict=True):
        network.site(site, spark).stream(name, rate.selectExpr("timestamp AS ts", "value"))
    query = network.deploy(MEMORY, sink=SINK)
    running = query.dataframe.writeStream.format("noop").trigger(processingTime="1 second").start()
    samples, started = [], time.monotonic()
    while time.monotonic() - started < seconds:
        query.check()
        samples.append((time.monotonic() - started, {**memory_now(), "Java, in use": heap_in_use(spark)}))
        time.sleep(min(5.0, seconds / 20))
    running.stop()
    network.stop()
    return samples


def heap_in_use(spark: SparkSession) -> int:
    """The bytes of Java's heap that are still in use after a collection."""
    java = spark.sparkContext._jvm.java.lang
    java.System.gc()
    runtime = java.Runtime.getRuntime()
    return int(runtime.totalMemory() - runtime.freeMemory())


@contextmanager
def nats(directory: Path) -> Iterator[dict[str, Any]]:
    with NatsServer(directory / "nats") as server:
        yield {"kind": "nats", "url": server.url}


def expected_results(workload: Workload, streams: Path) -> tuple[Any, ...]:
    """How many results there are, and a sum of their hashes."""
    connection = duckdb.connect()
    for stream in SITES:
        connection.execute(f"CREATE VIEW {stream} AS SELECT * FROM '{streams}/{stream}/*.parquet'")
    return connection.execute(f"{_summary()} ({workload.offline})").fetchone() or ()


def check_same(outcomes: dict[str, Outcome], expected: tuple[Any, ...]) -> None:
    for name, outcome in outcomes.items():
        found = duckdb.execute(f"{_summary()} '{outcome.results}/*.parquet'").fetchone()
        if found != expected:
            raise SystemExit(f"{name} gave {found}, not {expected}")


def _summary() -> str:
    return f"SELECT count(*), sum(hash({', '.join(f'{stream}_row' for stream in SITES)})) FROM"


@dataclass(frozen=True)
class Measured:
    """Everything that the page shows."""

    given: Input
    outcomes: dict[str, Outcome]
    latencies: dict[str, float]
    memory: list[tuple[float, dict[str, int]]]
    airline: list[sites_links.Shipped]
    regions: sites_links.Shipped

    def page(self) -> str:
        lines = [
            "# One site and several",
            "",
            f"{self.given.workload.name}: {self.given.rows:,} rows, {self.given.expected[0]:,} results, the same as "
            "DuckDB's in every run. Two cores for everything. `python -m benchmarks.sites`",
            "",
            "| where | rows a second | of one site | MB over links |",
            "|---|---|---|---|",
        ]
        one = self.outcomes["one site"].rate
        for name, outcome in self.outcomes.items():
            crossed = f"{outcome.crossed / 1e6:.1f}" if outcome.crossed else ""
            lines.append(f"| {name} | {outcome.rate:,.0f} | {outcome.rate / one:.2f} | {crossed} |")
        lines += ["", "![Rows a second](sites.png)", "", "## Latency", ""]
        lines += ["| small batches that follow each other | median seconds from a row to its result |", "|---|---|"]
        lines += [f"| {name} | {seconds:.2f} |" for name, seconds in self.latencies.items()]
        return "\n".join([*lines, *self._memory(), *sites_links.section(self.airline, self.regions)]) + "\n"

    def _memory(self) -> list[str]:
        """The means of the second and the last quarter: in the first one, windows and caches fill."""
        quarter = len(self.memory) // 4
        lines = [
            "",
            "## Memory",
            "",
            f"Three sites on one Spark join 6,000 rows a second for {self.memory[-1][0] / 60:.0f} minutes.",
            "",
            "| MB | second quarter of the time | last quarter |",
            "|---|---|---|",
        ]
        for part in self.memory[0][1]:
            second, last = (
                sum(sample[part] for _, sample in samples) / len(samples) / 1e6
                for samples in (self.memory[quarter : 2 * quarter], self.memory[-quarter:])
            )
            lines.append(f"| {part} | {second:,.0f} | {last:,.0f} |")
        return [*lines, "", "![Memory over time](sites_memory.png)"]

    def draw(self, directory: Path) -> None:
        matplotlib.use("Agg")
        from matplotlib import pyplot

        figure, axes = pyplot.subplots(figsize=(8, 3), layout="constrained")
        axes.barh(list(self.outcomes)[::-1], [outcome.rate for outcome in self.outcomes.values()][::-1])
        axes.set_xlabel("rows a second")
        figure.savefig(directory / "sites.png", dpi=110, metadata={"Software": None})
        figure, axes = pyplot.subplots(figsize=(8, 3), layout="constrained")
        for part in self.memory[0][1]:
            axes.plot([at for at, _ in self.memory], [sample[part] / 1e6 for _, sample in self.memory], label=part)
        axes.set(xlabel="seconds", ylabel="MB", ylim=(0, None))
        axes.legend()
        figure.savefig(directory / "sites_memory.png", dpi=110, metadata={"Software": None})


def measure_rates(spark: SparkSession, given: Input, directory: Path, servers: dict[str, Any]) -> dict[str, Outcome]:
    """Two turns of each run, of which the second counts; processes are new each time, so that they have one."""

    def over_nats(place: Path) -> dict[str, Any]:
        return {**servers, "prefix": place.name}

    runs: dict[str, Callable[[Path], Outcome]] = {
        "one site": lambda place: at_one_site(spark, given, place),
        "three sites on one Spark, directory": lambda place: at_three_sites(spark, given, place),
        "three sites on one Spark, NATS": lambda place: at_three_sites(spark, given, place, over_nats(place)),
        "three processes, directory": lambda place: at_three_processes(given, place),
        "three processes, NATS": lambda place: at_three_processes(given, place, over_nats(place)),
    }
    outcomes: dict[str, Outcome] = {}
    for turn in range(2):
        for number, (run, call) in enumerate(runs.items()):
            if turn == 1 or "processes" not in run:
                with console.status(f"{run}, turn {turn + 1}"):
                    outcomes[run] = call(directory / f"{turn}-{number}")
                console.print(f"{run}: {outcomes[run].rate:,.0f} rows/s, {outcomes[run].crossed:,} bytes crossed")
    check_same(outcomes, given.expected)
    return {run: outcomes[run] for run in runs}


def main(arguments: list[str]) -> None:
    scale = SHORT if "--short" in arguments else FULL
    spark = local_spark(settings={"spark.driver.memory": "4g"}, log=Path(tempfile.gettempdir()) / "sites.log")
    with tempfile.TemporaryDirectory() as name, nats(Path(name)) as servers:
        given = Input.written(scale.workload, Path(name) / "streams")
        outcomes = measure_rates(spark, given, Path(name), servers)
        hops = {"one site": 0, "two sites and a sink": 1}
        latencies = {where: latency(spark, count, scale.latency) for where, count in hops.items()}
        memory = memory_over_time(spark, scale.memory)
        links = sites_links.airline(scale.minutes), sites_links.regions()
        measured = Measured(given, outcomes, latencies, memory, *links)
        if scale is SHORT:
            measured.draw(Path(name))
            print(measured.page())
        else:
            measured.draw(RESULTS)
            (RESULTS / "sites.md").write_text(measured.page())


if __name__ == "__main__":
    main(sys.argv[1:])
