"""Creating, trimming and deleting topics."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.cimpl import NewTopic

from braid.channels.kafka.connection import Connection
from braid.channels.kafka.options import KafkaOptions, Setting
from braid.errors import ChannelError

logger = logging.getLogger(__name__)

KEPT: Mapping[str, Setting] = {"cleanup.policy": "delete", "retention.ms": -1, "retention.bytes": -1}
"""Settings of a topic whose records stay until they are deleted up to an offset."""

COMPACTED: Mapping[str, Setting] = {
    "cleanup.policy": "compact",
    "segment.bytes": 4 * 1024 * 1024,
    "segment.ms": 3_600_000,
}
"""Settings of a topic that keeps the last record of each key. Small segments are compacted soon."""

PAUSE = 0.05
"""Seconds between questions whether a new topic is there."""


def create(
    connection: Connection, options: KafkaOptions, topic: str, partitions: int, settings: Mapping[str, Setting]
) -> None:
    """Create a topic unless it is there, and wait until the brokers know it."""
    if options.administer:
        config = {name: _text(value) for name, value in {**settings, **dict(options.topic)}.items()}
        new = NewTopic(topic, partitions, options.replicas or -1, config=config)
        try:
            connection.admin.create_topics([new], request_timeout=connection.timeout)[topic].result()
        except KafkaException as problem:
            if problem.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
    waiting_since = time.monotonic()
    while not (existing := connection.partitions(topic, create=not options.administer)):
        if time.monotonic() - waiting_since > connection.timeout:
            raise KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
        time.sleep(PAUSE)
    if existing < partitions:
        raise ChannelError(
            f"the topic {topic} has {existing} partitions, but needs {partitions}; let Braid create it, "
            f"with administer: true, or set num.partitions={partitions} at the brokers"
        )


def trim(connection: Connection, options: KafkaOptions, topic: str, partition: int, before: int) -> None:
    """Delete the records before an offset. If the cluster refuses, they stay: nobody reads them."""
    if options.administer:
        where = TopicPartition(topic, partition, before)
        try:
            for deleting in connection.admin.delete_records([where], request_timeout=connection.timeout).values():
                deleting.result()
        except KafkaException as problem:
            reason = problem.args[0].str()
            logger.warning("records before %d of partition %d of topic %s stay: %s", before, partition, topic, reason)


def delete(connection: Connection, options: KafkaOptions, topic: str) -> None:
    """Delete a topic. If the cluster refuses, it stays: nobody reads it."""
    if options.administer:
        try:
            connection.admin.delete_topics([topic], request_timeout=connection.timeout)[topic].result()
        except KafkaException as problem:
            logger.warning("topic %s stays: %s", topic, problem.args[0].str())


def _text(value: Setting) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
