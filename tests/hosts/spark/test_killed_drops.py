"""Sites that are killed while a query is dropped: what they have kept of it is not what a later query goes on from."""

import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import braid
from braid.channels.directories import DirectoryChannels
from braid.errors import FileError, RunError
from braid.files.network import NetworkFile, load_network
from braid.hosts.deployment_request import DeploymentRequest
from braid.hosts.drops import Drops
from braid.hosts.registry import Registry
from braid.hosts.spark.driver.network import Network
from braid.hosts.spark.driver.site_process import SiteProcess
from braid.testing import assert_same_rows, oracle
from braid.testing.stream_files import random_rows, write_stream
from tests.hosts.conftest import PAIRS, Feed, run_out, without_time, written
from tests.hosts.spark.conftest import streams_of_files, write_network

LINE = braid.Topology.from_links([("paris", "lyon", 0.004)])
LONG_LINE = braid.Topology.from_links([("paris", "lyon", 0.004), ("lyon", "nice", 0.006)])
SITES = {"a": "paris", "b": "lyon"}


def paths_at(directory: Path) -> list[Path]:
    """What the sites have of all queries."""
    return [path for path in directory.glob("*/*") if path.is_dir()]


class Programs:
    """A program that runs two sites, and another one that drops their query."""

    def __init__(self, spark: Any, feed: Feed, directory: Path) -> None:
        self._spark = spark
        self._path = directory / "network"
        self._directory = directory
        self.tables: dict[str, pa.Table] = {name: random_rows(seed, 60) for seed, name in enumerate(SITES)}
        self._frames = {name: feed(name, table, 20) for name, table in self.tables.items()}
        self._drops: Drops | None = None

    def start(self) -> Network:
        network: Network = braid.Network(LINE, directory=self._path, adapt=False)
        for name, site in SITES.items():
            network.site(site, self._spark).stream(name, self._frames[name], lateness="1 second")
        return network

    def check(self, network: Network, name: str) -> None:
        """Deploy the query; it gives all results."""
        query = network.deploy(PAIRS, name="pairs", sink="lyon")
        query.process_available()
        results = without_time(run_out(query.dataframe, self._directory, name=name))
        assert_same_rows(results, oracle(PAIRS, self.tables))

    def ask(self) -> None:
        channels = DirectoryChannels(self._path)
        self._drops = Drops(Registry(LINE, channels), channels)
        self._drops.ask("pairs")

    def end(self) -> None:
        assert self._drops is not None
        assert self._drops.drop("pairs", wait=0) is None

    @property
    def left(self) -> list[Path]:
        return paths_at(self._path / "sites")


@pytest.fixture
def programs(spark: Any, feed: Feed, tmp_path: Path) -> Programs:
    return Programs(spark, feed, tmp_path)


def kill_between_stopped_and_the_end(programs: Programs) -> None:
    """The program that runs the sites says that they have stopped, and does nothing any more."""
    network = programs.start()
    programs.check(network, "first")
    programs.ask()
    network.leave(network.query("pairs").deployed)
    network.stop()
    programs.end()
    assert programs.left, "nobody was there to remove the checkpoints"


def test_a_later_query_of_the_same_name_does_not_go_on_from_what_a_killed_site_has_kept(programs: Programs) -> None:
    kill_between_stopped_and_the_end(programs)
    network = programs.start()
    try:
        programs.check(network, "second")
    finally:
        network.stop()


def test_not_even_if_nobody_has_removed_it(programs: Programs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark writes to the checkpoint of a query that has stopped for a while; a mark may be lost with the machine."""
    kill_between_stopped_and_the_end(programs)
    kept = programs.left
    for checkpoint in kept:
        (checkpoint / "left").unlink(missing_ok=True)
    network = programs.start()
    try:
        programs.check(network, "second")
    finally:
        network.stop()
    assert set(kept) < set(programs.left)


def test_what_is_left_of_a_dropped_query_is_removed_when_its_site_is_back(programs: Programs) -> None:
    kill_between_stopped_and_the_end(programs)
    network = programs.start()
    network.stop()
    assert not programs.left


def test_a_site_that_is_back_before_the_drop_is_over_keeps_what_may_have_to_go_on(programs: Programs) -> None:
    network = programs.start()
    programs.check(network, "first")
    kept = programs.left
    programs.ask()
    network.leave(network.query("pairs").deployed)
    network.stop()
    network = programs.start()
    assert programs.left == kept
    programs.end()
    network.remove_left()
    assert not programs.left


def test_a_new_program_ends_the_drop_of_a_query_with_a_site_that_never_ran(
    spark: Any, feed: Feed, tmp_path: Path
) -> None:
    tables = {name: random_rows(seed, 60) for seed, name in enumerate(SITES)}
    frames = {name: feed(name, table, 20) for name, table in tables.items()}

    def start() -> Network:
        network: Network = braid.Network(LONG_LINE, directory=tmp_path / "network", adapt=False)
        for site in SITES.values():
            network.site(site, spark)
        return network

    network = start()
    try:
        for name, site in SITES.items():
            network.site(site).stream(name, frames[name], lateness="1 second")
        network.deploy(PAIRS, name="pairs", sink="nice")
        with pytest.raises(RunError, match="site nice has not stopped its part"):
            network.drop("pairs", wait=0)
        network.stop()
        network = start()
        with pytest.raises(RunError, match="site nice has not stopped its part"):
            network.drop("pairs", wait=0)
        network.site("nice", spark)
        network.drop("pairs", wait=0)
        assert network.registry.deployments() == {}
        assert network.drops.asked() == frozenset()
        assert not paths_at(tmp_path / "network" / "sites")
        with pytest.raises(braid.BraidError, match="no query 'pairs' is deployed"):
            network.drop("pairs", wait=0)
    finally:
        network.stop()


def at_one_site(directory: Path, results: str) -> NetworkFile:
    """A network of one site, which writes the results of its query."""
    query = {"sql": PAIRS, "sink": "paris", "output": {"format": "parquet", "path": results}}
    file = write_network(
        directory,
        topology={"sites": ["paris"], "links": []},
        streams=streams_of_files(dict.fromkeys(SITES, "paris"), "1 second"),
        queries={"pairs": query},
    )
    return load_network(file)


def test_a_site_process_that_is_killed_during_a_drop_begins_a_later_query_anew(spark: Any, tmp_path: Path) -> None:
    tables = {name: random_rows(seed, 60) for seed, name in enumerate(SITES)}
    for name, table in tables.items():
        write_stream(tmp_path / "streams" / name, table, 20)
    expected = oracle(PAIRS, tables)
    channels = DirectoryChannels(tmp_path / "state")
    registry = Registry(braid.Topology.from_links([], sites=["paris"]), channels)
    drops = Drops(registry, channels)

    def run_all(process: SiteProcess, results: str) -> None:
        registry.deploy(DeploymentRequest(PAIRS, "pairs", "paris"))
        while written(tmp_path / results).num_rows < expected.num_rows:
            process.look()
            time.sleep(0.2)
        assert_same_rows(without_time(written(tmp_path / results)), expected)

    process = SiteProcess(at_one_site(tmp_path, "first"), "paris", spark)
    try:
        run_all(process, "first")
        drops.ask("pairs")
        process.look()
    finally:
        process.stop()
    drops.drop("pairs", wait=0)
    assert [path for path in (tmp_path / "state" / "results").iterdir() if path.is_dir()]
    process = SiteProcess(at_one_site(tmp_path, "second"), "paris", spark)
    try:
        process.look()
        assert not paths_at(tmp_path / "state" / "sites")
        assert not list((tmp_path / "state" / "results").iterdir())
        run_all(process, "second")
    finally:
        process.stop()


def test_a_query_that_is_deployed_again_does_not_write_where_the_results_of_the_first_are(
    spark: Any, tmp_path: Path
) -> None:
    """Spark's file sink would skip the first batches of the new query, because their numbers are there."""
    for seed, name in enumerate(SITES):
        write_stream(tmp_path / "streams" / name, random_rows(seed, 60), 20)
    registry = Registry(braid.Topology.from_links([], sites=["paris"]), DirectoryChannels(tmp_path / "state"))
    drops = Drops(registry, DirectoryChannels(tmp_path / "state"))
    process = SiteProcess(at_one_site(tmp_path, "results"), "paris", spark)
    try:
        registry.deploy(DeploymentRequest(PAIRS, "pairs", "paris"))
        while written(tmp_path / "results").num_rows == 0:
            process.look()
            time.sleep(0.2)
        drops.ask("pairs")
        process.look()
        assert drops.drop("pairs", wait=0) is None
        registry.deploy(DeploymentRequest(PAIRS, "pairs", "paris"))
        with pytest.raises(FileError, match=r"query 'pairs': the results in .* give a new path for the results"):
            process.look()
    finally:
        process.stop()
