"""The channels of a network on a Kafka cluster, and what is announced there."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from braid.channels.announced import Announced
from braid.channels.kafka import topics
from braid.channels.kafka.channel import PARTITIONS, KafkaChannel
from braid.channels.kafka.channel_state import END, ChannelState
from braid.channels.kafka.connection import Connection, connection_of
from braid.channels.kafka.documents import DocumentTopic, new_attempt
from braid.channels.kafka.follower import Follower
from braid.channels.kafka.options import KafkaOptions
from braid.channels.plain_names import plain_name
from braid.errors import ChannelError

TOPIC = "topic of a channel"
"""The kind of documents that say which topic a channel has.

A cluster deletes topics in the background. A channel that is opened after it was removed gets a new topic, so that it
never reads records that are left in the old one.
"""

Answer = TypeVar("Answer")


class KafkaChannels:
    """A topic for each channel, and one for documents; `prefix` sets them apart from others on the cluster."""

    def __init__(self, servers: str | list[str], **options: Any) -> None:
        self._options = KafkaOptions.from_json({"servers": servers, **options})
        self._documents = DocumentTopic(self._options)

    def open(self, name: str, keep: int = 0) -> KafkaChannel:
        topic = self._run(f"opening channel '{name}'", lambda connection: self._open(connection, name))
        return KafkaChannel(self._options, name, topic, lambda connection: self._topic(connection, name) == topic, keep)

    def remove(self, name: str) -> None:
        self._run(f"removing channel '{name}'", lambda connection: self._remove(connection, name))

    def announce(self, kind: str, key: str, document: Mapping[str, Any]) -> None:
        self._run(
            f"announcing {kind} '{key}'",
            lambda connection: self._documents.announce(connection, kind, key, document),
        )

    def announce_new(self, kind: str, key: str, document: Mapping[str, Any]) -> bool:
        attempt = new_attempt()
        return self._run(
            f"announcing {kind} '{key}'",
            lambda connection: self._documents.announce_new(connection, kind, key, document, attempt),
        )

    def announced(self, kind: str) -> Announced:
        return self._run(f"asking for announced {kind}", lambda connection: self._documents.announced(connection, kind))

    @property
    def damaged_documents(self) -> int:
        return self._documents.damaged

    def withdraw(self, kind: str, key: str) -> None:
        self._run(
            f"withdrawing {kind} '{key}'", lambda connection: self._documents.announce(connection, kind, key, None)
        )

    def to_json(self) -> dict[str, Any]:
        return self._options.to_json()

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> KafkaChannels:
        options = {name: value for name, value in content.items() if name not in ("kind", "servers")}
        return cls(content.get("servers", []), **options)

    def _run(self, what: str, action: Callable[[Connection], Answer]) -> Answer:
        return connection_of(self._options).run(what, self._options.patience, action)

    def _topic(self, connection: Connection, name: str) -> str | None:
        documents = self._documents.announced(connection, TOPIC)
        if documents.is_damaged(name):
            raise ChannelError(f"the document that names the topic of channel '{name}' is damaged; restore it")
        return str(documents[name]["topic"]) if name in documents else None

    def _open(self, connection: Connection, name: str) -> str:
        """The topic of a channel, created if there is none."""
        while (topic := self._topic(connection, name)) is None or self._has_ended(connection, name, topic):
            if topic is not None:
                self._remove(connection, name)  # an earlier removal was cut short
            new = topic_name(self._options.prefix, name)
            topics.create(connection, self._options, new, PARTITIONS, topics.KEPT)
            if not self._documents.announce_new(connection, TOPIC, name, {"topic": new}, new_attempt()):
                topics.delete(connection, self._options, new)
        return topic

    def _remove(self, connection: Connection, name: str) -> None:
        """End the log first: a process that has the channel open must not write to a topic that nobody reads."""
        topic = self._topic(connection, name)
        if topic is None:
            return
        if connection.partitions(topic):
            self._follower(connection, name, topic).append(connection, END, b"{}")
        self._documents.announce(connection, TOPIC, name, None)
        topics.delete(connection, self._options, topic)

    def _has_ended(self, connection: Connection, name: str, topic: str) -> bool:
        with self._follower(connection, name, topic).caught_up(connection) as state:
            return state.ended

    def _follower(self, connection: Connection, name: str, topic: str) -> Follower[ChannelState]:
        return Follower.of(connection, topic, lambda first: ChannelState(name, first))


def topic_name(prefix: str, channel: str) -> str:
    """A new name for the topic of a channel; topics have letters, digits, dots, _ and - only."""
    return f"{prefix}.channel.{plain_name(channel).replace('=', '.')}.{secrets.token_hex(6)}"
