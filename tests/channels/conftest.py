"""A NATS server for the tests of channels."""

from collections.abc import Iterator

import pytest

from braid.channels.jetstream.connection import close_connections
from braid.testing.nats_server import NatsServer


@pytest.fixture(scope="session")
def nats_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    with NatsServer(tmp_path_factory.mktemp("nats")) as server:
        yield server
        close_connections()
