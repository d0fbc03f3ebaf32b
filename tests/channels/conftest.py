"""Servers for the tests of channels, and a file system without hard links."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from braid.channels.jetstream.connection import close_connections as close_nats_connections
from braid.channels.kafka.connection import close_connections as close_kafka_connections
from braid.testing.kafka_broker import KafkaBroker
from braid.testing.kafka_cluster import KafkaCluster
from braid.testing.nats_server import NatsServer


@pytest.fixture
def no_links(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuses hard links, as FAT and mounts of object stores do."""

    def refuse(source: Path, target: Path) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), str(source), None, str(target))

    monkeypatch.setattr(os, "link", refuse)


@pytest.fixture(scope="session")
def nats_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    with NatsServer(tmp_path_factory.mktemp("nats")) as server:
        yield server
        close_nats_connections()


@pytest.fixture(scope="session")
def kafka_cluster() -> Iterator[KafkaCluster]:
    with KafkaCluster(brokers=3) as cluster:
        yield cluster
        close_kafka_connections()


@pytest.fixture(scope="session")
def kafka_broker() -> Iterator[KafkaBroker]:
    with KafkaBroker() as broker:
        yield broker
        close_kafka_connections()
