"""The papers' queries at several sites, sharing one Spark and as processes, by each kind of channel."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml

import braid
from braid.channels.kafka.connection import close_connections
from braid.model.statistics import Statistics
from braid.testing import assert_same_rows, oracle
from braid.testing.kafka_cluster import KafkaCluster
from braid.testing.nats_server import NatsServer
from braid.testing.stream_files import write_stream
from braid.workloads.airline import airline_statistics
from braid.workloads.airline_day import QUERIES, Airline
from braid.workloads.airline_sites import SINKS, SITES, airline_network
from tests.hosts.conftest import run_out, without_time
from tests.hosts.spark.conftest import SPARK, running, streams_of_files

LATENESS = "1 minute"


@dataclass(frozen=True)
class Workload:
    """Streams at sites of a network, and queries by name, each with its sink."""

    tables: Mapping[str, pa.Table]
    topology: braid.Topology
    sites: Mapping[str, str]
    queries: Mapping[str, str]
    sinks: Mapping[str, str]
    known: Statistics
    planner: str

    def write(self, directory: Path) -> None:
        for name, table in self.tables.items():
            write_stream(directory / name, table, -(-table.num_rows // 3))


def airline() -> Workload:
    """Three minutes of the airline of the IFLOW paper."""
    minutes = [Airline().minute(number) for number in range(3)]
    tables = {name: pa.concat_tables([minute[name] for minute in minutes]) for name in SITES}
    return Workload(tables, airline_network(), SITES, QUERIES, SINKS, airline_statistics(SITES), "exact")


PACKETS = {"S1": (6, 2, 40), "S2": (2, 30, 3), "S3": (25, 1, 2)}
"""Packets by destination that each of three routers sees: each has another one that most of them go to."""
MONITOR = """SELECT S1.dest, S1.n AS first, S2.n AS second, S3.n AS third
FROM S1 [RANGE 5 SECONDS], S2 [RANGE 5 SECONDS], S3 [RANGE 5 SECONDS]
WHERE S1.dest = S2.dest AND S2.dest = S3.dest"""


def routers() -> Workload:
    """Packets with the same destination at three routers, the example of the NOS and PMJoin papers."""
    choose, tables = np.random.default_rng(1), {}
    for router, counts in PACKETS.items():
        destinations = choose.permutation(np.repeat(["a", "b", "c"], counts))
        times = np.sort(choose.integers(0, 20_000_000, len(destinations)))
        tables[router] = pa.table(
            {"ts": pa.array(times, pa.timestamp("us", "UTC")), "dest": destinations, "n": range(len(destinations))}
        )
    known = Statistics(
        rates={router: sum(counts) / 20 for router, counts in PACKETS.items()},
        histograms={f"{router}.dest": dict(zip("abc", counts, strict=True)) for router, counts in PACKETS.items()},
    )
    links = braid.Topology.from_links([("r1", "r2", 0.002), ("r2", "r3", 0.003), ("r1", "r3", 0.004)])
    sites = {"S1": "r1", "S2": "r2", "S3": "r3"}
    return Workload(tables, links, sites, {"monitor": MONITOR}, {"monitor": "r2"}, known, "pmjoin")


@contextmanager
def channels(kind: str, directory: Path) -> Iterator[dict[str, Any] | None]:
    if kind == "directory":
        yield None
        return
    if kind == "kafka":
        with KafkaCluster() as cluster:
            yield cluster.channels
        close_connections()
        return
    with NatsServer(directory / "nats") as server:
        yield {"kind": "nats", "url": server.url}


def embedded(workload: Workload, kind: str, directory: Path, spark: Any) -> dict[str, pa.Table]:
    """The results of each query, with sites that share one Spark."""
    with channels(kind, directory) as where:
        network = braid.Network(workload.topology, directory=directory / "network", channels=where, adapt=False)
        try:
            for name, site in workload.sites.items():
                path = str(directory / "streams" / name)
                frame = spark.readStream.schema(spark.read.parquet(path).schema).option("maxFilesPerTrigger", 1)
                network.site(site, spark).stream(name, frame.parquet(path), lateness=LATENESS)
            for name, text in workload.queries.items():
                network.deploy(
                    text,
                    name=name,
                    sink=workload.sinks[name],
                    planner=workload.planner,
                    statistics=workload.known,
                    shards=1,
                )
            network.process_available()
            return {
                query.name: without_time(run_out(query.dataframe, directory, name=query.name))
                for query in network.queries
            }
        finally:
            network.stop()


def as_processes(workload: Workload, kind: str, directory: Path, expected: Mapping[str, int]) -> dict[str, pa.Table]:
    """The results of each query, with a process for each site."""
    with channels(kind, directory) as where:
        file = directory / "network.yaml"
        file.write_text(yaml.safe_dump(network_file(workload, where)))
        (directory / "known.yaml").write_text(yaml.safe_dump(statistics_file(workload.known)))
        with running(file, workload.topology.names) as processes:
            return {
                name: processes.wait_for_rows(directory / "results" / name, rows) for name, rows in expected.items()
            }


def network_file(workload: Workload, where: dict[str, Any] | None) -> dict[str, Any]:
    return {
        "topology": {"links": [[link.source, link.target, link.latency] for link in workload.topology.links]},
        "directory": "state",
        "streams": streams_of_files(workload.sites, LATENESS),
        "queries": {
            name: {
                "sql": text,
                "sink": workload.sinks[name],
                "planner": workload.planner,
                "statistics": "known.yaml",
                "output": {"format": "parquet", "path": f"results/{name}"},
            }
            for name, text in workload.queries.items()
        },
        "spark": SPARK,
        **({} if where is None else {"channels": where}),
    }


def statistics_file(known: Statistics) -> dict[str, Any]:
    histograms = {
        column: [{"value": value, "rate": rate} for value, rate in rates.items()]
        for column, rates in known.histograms.items()
    }
    named = ("rates", "sizes", "selectivities")
    figures = {name: {str(key): figure for key, figure in getattr(known, name).items()} for name in named}
    return {name: figure for name, figure in {**figures, "histograms": histograms}.items() if figure}


def check(make: Callable[[], Workload], run: str, kind: str, directory: Path, request: pytest.FixtureRequest) -> None:
    workload = make()
    workload.write(directory / "streams")
    expected = {name: oracle(text, workload.tables) for name, text in workload.queries.items()}
    if run == "embedded":
        results = embedded(workload, kind, directory, request.getfixturevalue("spark"))
    else:
        counts = {name: table.num_rows for name, table in expected.items()}
        results = as_processes(workload, kind, directory, counts)
    assert results.keys() == expected.keys()
    for name, table in expected.items():
        assert table.num_rows > 0
        assert_same_rows(results[name], table)


@pytest.mark.xdist_group("spark")
def test_three_routers_over_nats(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    check(routers, "embedded", "nats", tmp_path, request)


@pytest.mark.sweep
@pytest.mark.parametrize("kind", ["directory", "nats", "kafka"])
@pytest.mark.parametrize("run", ["embedded", "processes"])
@pytest.mark.parametrize("make", [airline, routers])
def test_sweep_of_the_papers_queries(
    make: Callable[[], Workload], run: str, kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    check(make, run, kind, tmp_path, request)
