"""A query that reads the join of another one gives what it would give alone, also when the other one is dropped."""

from pathlib import Path
from typing import Any

import pytest

import braid
from braid.hosts.spark.driver.network import Network
from braid.model.statistics import Statistics
from braid.runtime.sites.deployed import KIND
from braid.testing import assert_same_rows, oracle
from braid.testing.nats_server import NatsServer
from tests.hosts.conftest import Feed, Streams, run_out, without_time

TRIANGLE = braid.Topology.from_links([("paris", "lyon", 0.004), ("lyon", "nice", 0.006), ("paris", "nice", 0.009)])
SITES = {"a": "paris", "b": "lyon", "c": "nice"}
KNOWN = Statistics(rates={"a": 10, "b": 12, "c": 9}, selectivities={"a.k = b.k": 0.001, "b.k = c.k": 0.001})
PAIRS = "SELECT a.n AS an, b.n AS bn FROM a [RANGE 20 SECONDS], b [RANGE 20 SECONDS] WHERE a.k = b.k"
TRIPLES = """SELECT a.n AS an, b.n AS bn, c.n AS cn FROM a [RANGE 12 SECONDS], b [RANGE 20 SECONDS],
             c [RANGE 20 SECONDS] WHERE a.k = b.k AND b.k = c.k AND a.k < 5"""
SINCE = 15_000_000
"""A quarter of the event time of all rows."""


def test_a_join_serves_a_later_query_and_outlives_its_own(spark: Any, feed: Feed, tmp_path: Path) -> None:
    check_reuse(spark, feed, tmp_path, None)
    assert not list((tmp_path / "network" / "channels").iterdir())


@pytest.mark.sweep
def test_a_join_serves_a_later_query_over_nats(spark: Any, feed: Feed, tmp_path: Path) -> None:
    with NatsServer(tmp_path / "nats") as server:
        check_reuse(spark, feed, tmp_path, {"kind": "nats", "url": server.url})


def check_reuse(spark: Any, feed: Feed, tmp_path: Path, channels: dict[str, Any] | None) -> None:
    streams = Streams(feed, tmp_path / "streams")

    def open_network() -> Network:
        network: Network = braid.Network(TRIANGLE, directory=tmp_path / "network", channels=channels, adapt=False)
        for name, site in SITES.items():
            network.site(site, spark).stream(name, streams.frames[name], lateness="1 second")
        return network

    def check(name: str, text: str, since: int | None = None) -> None:
        network.process_available()
        results = without_time(run_out(network.query(name).dataframe, tmp_path, name=name))
        assert_same_rows(results, oracle(text, streams.rows, since=since))
        assert results.num_rows > 0

    network = open_network()
    try:
        network.deploy(PAIRS, name="pairs", sink="lyon", statistics=KNOWN, reuse=True)
        check("pairs", PAIRS)
        second = network.deploy(TRIPLES, name="triples", sink="nice", statistics=KNOWN, reuse=True, since=SINCE)
        assert "a ⋈ b at lyon (reused)" in second.explain()
        streams.more()
        check("triples", TRIPLES, SINCE)
        check("pairs", PAIRS)
        # Neither a nor b are shipped for the second query.
        assert set(second.traffic()) == {"lyon - nice"}
        network.drop("pairs")
        assert [query.name for query in network.queries if not query.deployed.is_dropped] == ["triples"]
        network.stop()
        # A program that starts anew finds what goes on for the second query.
        network = open_network()
        network.deploy(TRIPLES, name="triples", sink="nice")
        streams.more()
        check("triples", TRIPLES, SINCE)
        network.drop("triples")
        assert network.queries == ()
        assert network.channels.announced(KIND) == {}
    finally:
        network.stop()


STRICT = f"{PAIRS} AND a.n > 12"
WEAK = f"{PAIRS} AND a.n > 4"


def test_a_filter_of_a_running_query_is_weakened(spark: Any, feed: Feed, tmp_path: Path) -> None:
    streams = Streams(feed, tmp_path / "streams")

    def open_network() -> Network:
        network: Network = braid.Network(TRIANGLE, directory=tmp_path / "network", adapt=False)
        for name, site in SITES.items():
            network.site(site, spark).stream(name, streams.frames[name], lateness="1 second")
        return network

    def check(name: str, text: str) -> None:
        network.process_available()
        results = without_time(run_out(network.query(name).dataframe, tmp_path, name=name))
        assert_same_rows(results, oracle(text, streams.rows))
        assert results.num_rows > 0

    network = open_network()
    try:
        strict = network.deploy(STRICT, name="strict", sink="lyon", statistics=KNOWN, reuse=True)
        check("strict", STRICT)
        weak = network.deploy(WEAK, name="weak", sink="nice", statistics=KNOWN, reuse=True)
        assert "a ⋈ b at lyon (reused)" in weak.explain()
        check("weak", WEAK)
        streams.more()
        network.process_available()
        strict.await_change()
        assert "a ⋈ b at lyon (reused)" in strict.explain()
        check("strict", STRICT)
        check("weak", WEAK)
        # Neither a nor b are shipped for the second query.
        assert set(weak.traffic()) == {"lyon - nice"}
        network.stop()
        network = open_network()
        network.deploy(STRICT, name="strict", sink="lyon")
        network.deploy(WEAK, name="weak", sink="nice")
        streams.more()
        check("strict", STRICT)
        check("weak", WEAK)
        network.drop("strict")
        check("weak", WEAK)
        network.drop("weak")
        assert network.queries == ()
        assert network.channels.announced(KIND) == {}
        assert not list((tmp_path / "network" / "channels").iterdir())
    finally:
        network.stop()
