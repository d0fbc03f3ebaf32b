"""Sites whose channels are on a NATS server that goes away and comes back: nothing is lost, nothing comes twice."""

from collections.abc import Callable
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

import braid
from braid.channels.jetstream.connection import close_connections
from braid.model.statistics import Statistics
from braid.testing import assert_same_rows, oracle
from braid.testing.nats_server import NatsServer
from tests.hosts.conftest import Feed, Streams, run_out, without_time

AWAY_SECONDS = 2.0
PAIRS = "SELECT a.n AS an, b.n AS bn FROM a [RANGE 20 SECONDS], b [RANGE 20 SECONDS] WHERE a.k = b.k"
KNOWN = Statistics(rates={"a": 10, "b": 12}, selectivities={"a.k = b.k": 0.3})


@pytest.mark.sweep
@pytest.mark.parametrize("end", [NatsServer.kill, NatsServer.stop], ids=["killed", "stopped"])
def test_a_server_that_restarts_under_running_sites(
    end: Callable[[NatsServer], None], spark: Any, feed: Feed, tmp_path: Path
) -> None:
    """It goes away while sites start, while they work on a part of the rows, and after they have."""
    streams = Streams(feed, tmp_path / "streams")
    with NatsServer(tmp_path / "nats") as server:
        network = braid.Network(
            braid.Topology.from_links([("paris", "lyon", 0.004)]),
            directory=tmp_path / "network",
            channels={"kind": "nats", "url": server.url},
            adapt=False,
        )
        try:
            for name, site in {"a": "paris", "b": "lyon"}.items():
                network.site(site, spark).stream(name, streams.frames[name], lateness="1 second")
            query = network.deploy(PAIRS, name="pairs", sink="lyon", statistics=KNOWN, shards=1)
            for _ in range(2):
                restart(server, end)
                network.process_available()
                streams.more()
            network.process_available()
            restart(server, end)
            results = without_time(run_out(query.dataframe, tmp_path, name="pairs"))
            assert_same_rows(results, oracle(PAIRS, streams.rows))
            assert results.num_rows > 0
        finally:
            network.stop()
            close_connections()


def restart(server: NatsServer, end: Callable[[NatsServer], None]) -> None:
    """End the server, and start it again after some time, while the program goes on."""
    end(server)
    Timer(AWAY_SECONDS, server.start).start()
