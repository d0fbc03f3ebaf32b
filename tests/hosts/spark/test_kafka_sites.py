"""A query over sites whose channels are on Kafka gives what the oracle gives."""

from pathlib import Path
from typing import Any

import braid
from braid.channels.kafka.connection import close_connections
from braid.model.statistics import Statistics
from braid.testing import assert_same_rows, oracle
from braid.testing.kafka_cluster import KafkaCluster
from braid.testing.stream_files import random_rows
from tests.hosts.conftest import Feed, run_out, without_time

PAIRS = "SELECT a.n AS an, b.n AS bn FROM a [RANGE 20 SECONDS], b [RANGE 20 SECONDS] WHERE a.k = b.k"


def test_two_sites_over_kafka(spark: Any, feed: Feed, tmp_path: Path) -> None:
    tables = {name: random_rows(seed, 40) for seed, name in enumerate("ab")}
    expected = oracle(PAIRS, tables)
    with KafkaCluster() as cluster:
        network = braid.Network(
            braid.Topology.from_links([("paris", "lyon", 0.004)]),
            directory=tmp_path / "network",
            channels=cluster.channels,
            adapt=False,
        )
        try:
            for name, site in {"a": "paris", "b": "lyon"}.items():
                network.site(site, spark).stream(name, feed(name, tables[name], 20), lateness="1 second")
            known = Statistics(rates={"a": 10, "b": 12}, selectivities={"a.k = b.k": 0.3})
            query = network.deploy(PAIRS, sink="lyon", statistics=known, shards=1)
            network.process_available()
            assert_same_rows(without_time(run_out(query.dataframe, tmp_path, name="pairs")), expected)
            assert expected.num_rows > 0
            assert [traffic.rows for traffic in query.traffic().values()] == [40]
        finally:
            network.stop()
            close_connections()
