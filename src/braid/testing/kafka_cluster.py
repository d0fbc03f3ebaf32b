"""A Kafka cluster for tests: the one that the client library simulates in memory.

It takes records, keeps their order and hands them out, to any process of this machine. It creates topics when they are
first used. It cannot create them by request, delete them or delete records, has no users and no encryption, and keeps
the last 5 MB of each partition.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any

from confluent_kafka import Producer


class KafkaCluster:
    """A simulated cluster that lives as long as this object, on free ports that only this machine reaches."""

    def __init__(self, brokers: int = 1) -> None:
        # The client that simulates the cluster is otherwise not used.
        self._client: Producer | None = Producer(
            {"bootstrap.servers": "simulated", "test.mock.num.brokers": brokers, "log_level": 0}
        )
        metadata = self._client.list_topics(timeout=60)
        self.servers = [f"{broker.host}:{broker.port}" for broker in metadata.brokers.values()]

    @property
    def channels(self) -> dict[str, Any]:
        """The description of channels on this cluster."""
        return {"kind": "kafka", "servers": self.servers, "administer": False}

    def stop(self) -> None:
        self._client = None

    def __enter__(self) -> KafkaCluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
