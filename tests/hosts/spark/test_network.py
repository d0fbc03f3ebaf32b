"""Queries deployed over several sites that share one Spark give what the oracle gives."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import braid
from braid.hosts.spark.driver.deployed_query import DeployedQuery
from braid.hosts.spark.driver.network import Network
from braid.model.plan import Plan
from braid.model.statistics import Statistics
from braid.planning.planners import PLANNERS
from braid.testing import assert_same_rows, oracle
from braid.testing.stream_files import THREE_WAY_JOIN, random_rows
from tests.hosts.conftest import Feed, without_time, written

TRIANGLE = braid.Topology.from_links([("paris", "lyon", 0.004), ("lyon", "nice", 0.006), ("paris", "nice", 0.009)])
SITES = {"a": "paris", "b": "lyon", "c": "nice"}
KNOWN = Statistics(
    rates={"a": 10, "b": 12, "c": 9},
    selectivities={"a.k = b.k": 0.3, "b.k = c.k": 0.25},
    histograms={"a.k": {0: 6.0, 1: 3.0, 2: 1.0}, "b.k": {0: 1.0, 1: 5.0, 2: 6.0}},
)

Open = Callable[..., Network]
"""Opens the same network again, as a program that is started again does."""


@pytest.fixture
def tables() -> dict[str, pa.Table]:
    return {name: random_rows(seed, 60) for seed, name in enumerate("abc")}


@pytest.fixture
def opened(spark: Any, feed: Feed, tables: dict[str, pa.Table], tmp_path: Path) -> Open:
    frames = {name: feed(name, table, 20) for name, table in tables.items()}

    def open_network(adapt: bool = True) -> Network:
        network: Network = braid.Network(TRIANGLE, directory=tmp_path / "network", adapt=adapt)
        for name, site in SITES.items():
            network.site(site, spark).stream(name, frames[name], lateness="1 second")
        return network

    return open_network


def results(query: DeployedQuery, tmp_path: Path) -> pa.Table:
    """All results so far; called again for the same query, it goes on from the same checkpoint."""
    path = tmp_path / "result"
    query.process_available()
    writer = query.dataframe.writeStream.format("parquet").option("path", str(path))
    writer = writer.option("checkpointLocation", str(tmp_path / "result-checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    return without_time(written(path))


@pytest.mark.parametrize("planner", ["exact", "greedy", "pmjoin"])
def test_deployments_give_what_the_oracle_gives(
    planner: str, opened: Open, tables: dict[str, pa.Table], tmp_path: Path
) -> None:
    check_deployment(planner, opened, tables, tmp_path)


@pytest.mark.sweep
@pytest.mark.parametrize("planner", sorted(PLANNERS))
def test_sweep_of_deployments_of_every_planner(
    planner: str, opened: Open, tables: dict[str, pa.Table], tmp_path: Path
) -> None:
    check_deployment(planner, opened, tables, tmp_path)


def check_deployment(planner: str, opened: Open, tables: dict[str, pa.Table], tmp_path: Path) -> None:
    """The plan of a planner gives what the oracle gives, over the links that it says."""
    network = opened()
    query = network.deploy(THREE_WAY_JOIN, sink="lyon", planner=planner, statistics=KNOWN)
    try:
        assert_same_rows(results(query, tmp_path), oracle(THREE_WAY_JOIN, tables))
        assert all(traffic.rows > 0 for traffic in query.traffic().values())
        assert query.explain().startswith(planner)
        assert query.bill.total > 0
        # What a notebook shows.
        assert "<td" in query._repr_html_() and next(iter(query.traffic())) in query._repr_html_()
        assert repr(query) == f"<query {query.name} with results at lyon>"
        assert query.name in network._repr_html_() and "nice" in network._repr_html_()
    finally:
        network.stop()


def test_a_deployment_goes_on_where_it_was_stopped(opened: Open, tables: dict[str, pa.Table], tmp_path: Path) -> None:
    """Also if its sites stop in the middle, and the plan that it had is the one that it goes on with."""
    first = opened()
    planned = first.deploy(THREE_WAY_JOIN, name="joined", sink="lyon", planner="exact", statistics=KNOWN)
    first.stop()
    second = opened()
    query = second.deploy(THREE_WAY_JOIN, name="joined", sink="lyon")
    try:
        assert query.explain() == planned.explain()
        assert_same_rows(results(query, tmp_path), oracle(THREE_WAY_JOIN, tables))
        with pytest.raises(braid.BraidError, match="runs already"):
            second.deploy(THREE_WAY_JOIN, name="joined")
    finally:
        second.stop()
    with pytest.raises(braid.BraidError, match="query 'joined' was deployed as"):
        opened().deploy(THREE_WAY_JOIN.replace("SELECT", "SELECT a.k AS k,"), name="joined")


def test_a_query_that_is_stopped_goes_on_in_the_same_program(
    opened: Open, tables: dict[str, pa.Table], tmp_path: Path
) -> None:
    network = opened(adapt=False)
    try:
        stopped = network.deploy(THREE_WAY_JOIN, name="joined", sink="lyon", statistics=KNOWN)
        stopped.stop()
        network.process_available()
        for change in (lambda: stopped.move("a ⋈ b ⋈ c", "nice"), lambda: network.drain("lyon"), stopped.replan):
            with pytest.raises(braid.PlanError, match=r"query 'joined' is stopped in this program, .* deploy it again"):
                change()
        assert stopped.change is None
        query = network.deploy(THREE_WAY_JOIN, name="joined", sink="lyon")
        assert network.queries == (query,)
        assert (stopped.is_stopped, query.is_stopped) == (True, False)
        assert_same_rows(results(query, tmp_path), oracle(THREE_WAY_JOIN, tables))
    finally:
        network.stop()


def test_the_order_inside_a_site_is_free(opened: Open, tables: dict[str, pa.Table], tmp_path: Path) -> None:
    """A join of three streams at one site takes another order while it runs, as a query on one site does."""
    network = opened(adapt=False)
    query = network.deploy(THREE_WAY_JOIN, sink="lyon")
    other = {"a": ["c", "b"], "b": ["c", "a"], "c": ["b", "a"]}
    try:
        (part,) = (part for part in query.parts if part.spec.work.finals)
        (name,) = part.spec.nodes
        part.control.send(Plan.of(part.spec.nodes[name].query, other), node=name)
        part.control.send(Plan.of(part.spec.nodes[name].query, other), node="another node")
        assert_same_rows(results(query, tmp_path), oracle(THREE_WAY_JOIN, tables))
        figures = query.progress()["lyon"][name]
        assert figures["plan"] == other
        assert figures["rejected_messages"] == 0
        assert figures["late"] == {"a": 0, "b": 0, "c": 0}
        (change,) = query.orders()[f"{name} at lyon"]
        assert {head: list(sequence) for head, sequence in change.after.items()} == other
    finally:
        network.stop()


def test_groups_are_made_of_the_results(opened: Open, tables: dict[str, pa.Table], tmp_path: Path) -> None:
    """Groups whose windows have passed: those that are complete however late the last rows may be."""
    text = """SELECT count(*) AS n FROM a [RANGE 3 SECONDS] a, b [RANGE 3 SECONDS] b WHERE a.k = b.k
              GROUP BY WINDOW(event_time, '2 seconds')"""
    network = opened()
    query = network.deploy(text, sink="nice")
    try:
        counted = results(query, tmp_path).column("n").to_pylist()
    finally:
        network.stop()
    expected = oracle(text, tables).column("n").to_pylist()
    assert counted
    assert sum(counted) <= sum(expected)
    assert all(expected.count(count) >= counted.count(count) for count in counted)


def test_what_is_wrong_is_said_before_anything_runs(spark: Any, opened: Open, feed: Feed) -> None:
    network = opened()
    with pytest.raises(braid.TopologyError, match="has no site 'rome'"):
        network.site("rome")
    with pytest.raises(braid.StreamError, match="stream 'a' starts at site 'paris' already"):
        network.site("lyon").stream("a", feed("other", random_rows(9), 20))
    with pytest.raises(braid.StreamError, match="stream 't' is a table"):
        network.site("lyon").stream("t", spark.range(3))
    with pytest.raises(braid.TopologyError, match="has no site 'rome'"):
        network.deploy(THREE_WAY_JOIN, sink="rome")
    with pytest.raises(braid.BraidError, match="'z'"):
        network.deploy(THREE_WAY_JOIN.replace("FROM a [RANGE 20 SECONDS]", "FROM z [RANGE 20 SECONDS] a"))


@pytest.mark.sweep
def test_a_site_that_no_program_runs_is_told(
    spark: Any, opened: Open, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The program of another site has announced a stream and is gone: the query waits for that one."""
    opened().stop()
    network: Network = braid.Network(TRIANGLE, directory=tmp_path / "network", adapt=False)
    network.site("paris", spark).stream("a", spark.readStream.format("rate").load(), time="timestamp")
    try:
        network.deploy("SELECT b.k FROM b [RANGE 9 SECONDS], c [RANGE 9 SECONDS] WHERE b.k = c.k", sink="paris")
        while "site 'nice' does not run" not in caplog.text:
            time.sleep(0.5)
    finally:
        network.stop()
    assert caplog.text.count("site 'lyon' does not run, so that query") == 1
    assert "site 'paris' does not run" not in caplog.text
