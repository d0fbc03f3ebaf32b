"""Plans change between sites while queries run on Spark: nothing is lost, nothing comes twice."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import braid
from braid.adapt.controller import Policy
from braid.hosts.site_teller import TELL_SECONDS
from braid.hosts.spark.driver.deployed_query import DeployedQuery
from braid.hosts.spark.driver.network import Network
from braid.model.statistics import Statistics
from braid.model.stream import Stream
from braid.planning.relocation import moved
from braid.planning.solution.written import written_of
from braid.runtime.migration.change import Phase
from braid.testing import assert_same_rows, oracle
from braid.testing.stream_files import THREE_WAY_JOIN, random_rows
from tests.hosts.conftest import Feed, Streams, run_out, without_time

TRIANGLE = braid.Topology.from_links([("paris", "lyon", 0.004), ("lyon", "nice", 0.006), ("paris", "nice", 0.009)])
SITES = {"a": "paris", "b": "lyon", "c": "nice"}
KNOWN = Statistics(rates={"a": 10, "b": 12, "c": 9}, selectivities={"a.k = b.k": 0.001, "b.k = c.k": 0.001})
PAIRS = "SELECT a.n FROM a [RANGE 20 SECONDS], b [RANGE 20 SECONDS] WHERE a.k = b.k"
ROWS = random_rows(0).schema
OTHERWISE = Statistics(rates={"a": 90, "b": 50, "c": 9}, selectivities={"a.k = b.k": 0.5, "b.k = c.k": 0.0001})


@pytest.fixture
def streams(feed: Feed, tmp_path: Path) -> Streams:
    return Streams(feed, tmp_path / "streams")


@pytest.fixture
def network(spark: Any, streams: Streams, tmp_path: Path) -> Iterator[Network]:
    network = opened(spark, streams, tmp_path, adapt=False)
    yield network
    network.stop()


def opened(spark: Any, streams: Streams, tmp_path: Path, adapt: bool | Policy, controller: str = "central") -> Network:
    network: Network = braid.Network(TRIANGLE, directory=tmp_path / "network", adapt=adapt, controller=controller)
    for name, site in SITES.items():
        network.site(site, spark).stream(name, streams.frames[name], lateness="1 second")
    return network


def check(query: DeployedQuery, streams: Streams, tmp_path: Path) -> None:
    query.process_available()
    results = without_time(run_out(query.dataframe, tmp_path, name=query.name))
    assert_same_rows(results, oracle(THREE_WAY_JOIN, streams.rows))


def await_agreement(query: DeployedQuery) -> None:
    """Wait until the old and the new plan of a query have agreed on a moment: that needs no more rows."""
    while query.change is not Phase.SWITCHING or len(query.deployed.at_work) < 2 or query.deployed.current.number == 1:
        query.check()
        query.look()
        time.sleep(0.1)


def test_a_plan_changes_while_the_query_runs(network: Network, streams: Streams, tmp_path: Path) -> None:
    query = network.deploy(THREE_WAY_JOIN, name="joined", sink="lyon", statistics=KNOWN, shards=2)
    check(query, streams, tmp_path)
    before = query.explain()
    query.replan(planner="greedy", statistics=OTHERWISE)
    await_agreement(query)
    assert query.explain() != before
    streams.more()
    check(query, streams, tmp_path)
    streams.more()
    check(query, streams, tmp_path)
    query.await_change()
    (move,) = query.history()
    assert (move.is_done, move.reason, move.generation) == (True, "asked for", 2)
    assert move.seconds > 0
    query.look()
    assert [generation.number for generation in query.deployed.at_work] == [2]


def test_a_site_that_does_the_same_for_both_plans_goes_on(network: Network, streams: Streams, tmp_path: Path) -> None:
    """Its join, with its checkpoint, outlives the plan that it was started for."""
    parsed = braid.parse(THREE_WAY_JOIN, {name: Stream(name, ROWS, "ts", 1_000_000) for name in SITES})
    plan = moved(braid.plan(parsed, replace(KNOWN, sites=SITES), TRIANGLE, sink="lyon"), "b ⋈ c", "nice")
    query = network.deploy(THREE_WAY_JOIN, name="joined", sink="lyon", plan=plan, shards=1)
    query.process_available()
    nice = query.deployed.current.sites["nice"]
    query.move("a ⋈ b ⋈ c", "paris")
    await_agreement(query)
    streams.more()
    check(query, streams, tmp_path)
    query.await_change()
    while len(query.deployed.at_work) > 1:
        query.look()
        time.sleep(0.1)
    query.look()
    assert query.deployed.current.sites["nice"] == nice
    assert list((tmp_path / "network" / "sites" / "nice").glob("joined * #1"))
    assert not list((tmp_path / "network" / "sites" / "lyon").glob("joined * #1"))


def test_a_site_is_drained_of_the_probes_of_all_queries(network: Network, streams: Streams, tmp_path: Path) -> None:
    """If one query has to stay, no other one moves either."""
    query = network.deploy(THREE_WAY_JOIN, name="joined", sink="lyon", planner="greedy", statistics=KNOWN, shards=1)
    check(query, streams, tmp_path)
    (site, *_) = sorted(query.deployed.current.sites.keys() - {"lyon"})
    assert f"(at {site})" in query.explain()
    query.drain(site)
    await_agreement(query)
    assert f"(at {site})" not in query.explain()
    streams.more()
    check(query, streams, tmp_path)
    query.await_change()
    (move,) = query.history()
    assert (move.is_done, move.reason) == (True, f"drain {site}")


def test_what_cannot_be_moved_is_said_and_the_query_goes_on(network: Network, streams: Streams, tmp_path: Path) -> None:
    query = network.deploy(THREE_WAY_JOIN, name="joined", sink="lyon", statistics=KNOWN, shards=1)
    with pytest.raises(braid.PlanError, match="the plan has no join 'a ⋈ z'; did you mean 'b ⋈ c'"):
        query.move("a ⋈ z", "nice")
    with pytest.raises(braid.TopologyError, match="has no site 'rome'"):
        query.move("a ⋈ b ⋈ c", "rome")
    other = braid.plan(PAIRS, replace(KNOWN, sites={"a": "paris", "b": "lyon"}), TRIANGLE)
    with pytest.raises(braid.PlanError, match="the plan is for another query than 'joined'"):
        query.replan(other)
    with pytest.raises(braid.TopologyError, match="has no site 'rome'"):
        network.drain("rome")
    assert query.change is None
    check(query, streams, tmp_path)


def hot_keys(seed: int, hot: str) -> pa.Table:
    """Most rows have one key. The last third of them takes so long that event time passes every agreed moment."""
    choose = np.random.default_rng(seed)
    keys = [hot if chance < 0.8 else f"key {number}" for number, chance in enumerate(choose.random(600))]
    times = np.sort(np.append(choose.integers(0, 40_000_000, 400), choose.integers(40_000_000, 300_000_000, 200)))
    texts = [f"{number} of {hot} {choose.random()}" for number in range(len(keys))]
    return pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC")), "k": keys, "n": texts})


def test_parts_of_the_keys_follow_them(spark: Any, feed: Feed, tmp_path: Path) -> None:
    """Each stream is said to have many rows with a key that the other one has few of. In fact it is the other way."""
    tables = {name: hot_keys(seed, hot) for seed, (name, hot) in enumerate((("a", "x"), ("b", "y"), ("c", "z")))}
    streams = Streams(feed, tmp_path / "streams", tables)
    network = opened(spark, streams, tmp_path, adapt=Policy(threshold=0.0, horizon=float("inf")))
    wrong = Statistics(rates={"a": 10, "b": 10}, histograms={"a.k": {"x": 1.0, "y": 9.0}, "b.k": {"x": 9.0, "y": 1.0}})
    text = "SELECT a.n, b.n AS bn FROM a [RANGE 5 SECONDS], b [RANGE 5 SECONDS] WHERE a.k = b.k"
    try:
        query = network.deploy(text, name="parts", planner="pmjoin", statistics=wrong, shards=1)
        assert "in 2 parts of a.k = b.k" in query.explain()
        query.pin()
        query.process_available()
        streams.more()
        query.process_available()
        before = query.explain()
        while (known := query.statistics()) is None or len(known.histograms["b.k"]) < 3:
            query.check()
            time.sleep(0.1)
        query.unpin()
        await_agreement(query)
        assert query.explain() != before
        assert "in 2 parts of a.k = b.k" in query.explain()
        streams.more()
        query.process_available()
        results = without_time(run_out(query.dataframe, tmp_path, name=query.name))
        assert_same_rows(results, oracle(text, streams.rows))
        query.await_change()
        assert query.history()[0].is_done
    finally:
        network.stop()


def test_a_plan_changes_by_itself(spark: Any, streams: Streams, tmp_path: Path) -> None:
    """The plan ships rows of b, which are wide, because a is said to be fast; in fact it is as slow as b."""
    network = opened(spark, streams, tmp_path, adapt=Policy(threshold=0.0, horizon=float("inf")))
    text = "SELECT a.n, b.t, b.k FROM a [RANGE 20 SECONDS], b [RANGE 20 SECONDS] WHERE a.n = b.n"
    wrong = Statistics(rates={"a": 1_000, "b": 1}, selectivities={"a.n = b.n": 0.001})
    try:
        query = network.deploy(text, name="wide", statistics=wrong, shards=1)
        assert "a ⋈ b at paris" in query.explain()
        query.pin()
        query.process_available()
        streams.more()
        query.process_available()
        while query.statistics() is None:
            query.check()
            time.sleep(0.1)
        assert query.change is None
        query.unpin()
        await_agreement(query)
        assert "a ⋈ b at lyon" in query.explain()
        streams.more()
        query.process_available()
        results = without_time(run_out(query.dataframe, tmp_path, name=query.name))
        assert_same_rows(results, oracle(text, streams.rows))
        query.await_change()
        (move,) = query.history()
        assert move.reason.startswith("another plan saves")
        assert move.predicted is not None and move.predicted > 0
        assert move.copied > 0
    finally:
        network.stop()


def rare_matches(seed: int, share: float) -> pa.Table:
    """Rows of which only some have keys that other streams have, too."""
    rows = random_rows(seed, 180)
    choose = np.random.default_rng(seed)
    keys = np.where(choose.random(180) < share, rows["k"].to_numpy(), 1_000 * (seed + 1) + np.arange(180))
    return rows.set_column(1, "k", pa.array(keys))


def settled_statistics(query: DeployedQuery) -> Statistics:
    """The statistics when all sites have announced their last figures."""
    known: Statistics | None = None
    while known is None or query.statistics() != known:
        query.check()
        known = query.statistics()
        time.sleep(2 * TELL_SECONDS)
    return known


def test_sites_put_their_probe_sequences_in_order_among_themselves(spark: Any, feed: Feed, tmp_path: Path) -> None:
    """They come to the plan that greedy planning finds for the figures of all sites, which no site plans with."""
    tables = {"a": rare_matches(0, 1.0), "b": rare_matches(1, 1.0), "c": rare_matches(2, 0.1)}
    streams = Streams(feed, tmp_path / "streams", tables)
    wrong = Statistics(rates={"a": 10, "b": 10, "c": 90}, selectivities={"a.k = b.k": 0.0001, "b.k = c.k": 0.5})
    eager = Policy(threshold=0.0, horizon=float("inf"))
    network = opened(spark, streams, tmp_path, adapt=eager, controller="distributed")
    try:
        query = network.deploy(THREE_WAY_JOIN, name="joined", sink="lyon", planner="greedy", statistics=wrong, shards=1)
        before = query.deployed.current.written
        query.pin()
        query.process_available()
        streams.more()
        query.process_available()
        known = replace(settled_statistics(query), sites=SITES)
        assert query.deployed.current.written == before
        assert known.loads.keys() == set(SITES.values()) and min(known.loads.values()) > 0
        best = written_of(braid.plan(query.deployed.query, known, TRIANGLE, planner="greedy", sink="lyon").solution)
        query.unpin()
        await_agreement(query)
        query.pin()
        assert query.deployed.current.written == best != before
        streams.more()
        query.process_available()
        results = without_time(run_out(query.dataframe, tmp_path, name=query.name))
        assert_same_rows(results, oracle(THREE_WAY_JOIN, streams.rows))
        query.await_change()
        (move,) = query.history()
        assert move.is_done and move.reason.startswith("another plan saves")
    finally:
        network.stop()


def test_a_controller_that_does_not_exist_is_refused() -> None:
    with pytest.raises(braid.PlanError, match="there is no controller 'shared'; known: central, distributed"):
        braid.Network(TRIANGLE, controller="shared")
