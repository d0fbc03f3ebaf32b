"""Follows a log: the records of a partition, folded into a state that every process computes alike."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

from confluent_kafka import KafkaError, KafkaException

from braid.channels.kafka.connection import Connection
from braid.channels.kafka.records import NewRecord, Record
from braid.errors import ChannelError

LOG = 0
"""The partition of a topic that has its log."""


class Folded(Protocol):
    """What records make, one after the other."""

    def apply(self, record: Record) -> None: ...


State = TypeVar("State", bound=Folded)


class Follower(Generic[State]):
    """The state of a log as far as this process has read it."""

    def __init__(self, topic: str, begin: Callable[[int], State]) -> None:
        """`begin` makes the state before the first record, from the offset of that."""
        self.topic = topic
        self._begin = begin
        self._state: State | None = None
        self.position = 0
        """The offset behind the last record that was read."""
        self._lock = threading.RLock()

    @classmethod
    def of(cls, connection: Connection, topic: str, begin: Callable[[int], State]) -> Follower[State]:
        """The follower of this process: it goes on where the last one who asked has stopped."""
        follower: Follower[State] = connection.followers.setdefault(topic, cls(topic, begin))
        return follower

    @contextmanager
    def caught_up(self, connection: Connection, written: Record | None = None) -> Iterator[State]:
        """The state with all records that are there now, which nobody changes before the caller has done with it.

        `written` is a record that was appended: the state is at least the one after it.
        """
        with self._lock:
            if self._state is not None and written is not None and written.offset == self.position:
                # Nothing came between: there is no need to ask.
                self._apply(written, self._state)
            else:
                self._catch_up(connection, -1 if written is None else written.offset)
            assert self._state is not None
            yield self._state

    def append(self, connection: Connection, key: str, value: bytes | None, **headers: bytes) -> Record:
        """Append a record. What it means depends on the records that came before it."""
        new = NewRecord(value, key.encode(), headers)
        return Record(connection.append(self.topic, LOG, [new])[0], key.encode(), value, headers)

    def _catch_up(self, connection: Connection, written: int) -> None:
        first, end = connection.bounds(self.topic, LOG)
        if end <= written:
            # A new leader of the partition does not know yet how far its replicas are.
            raise KafkaException(KafkaError(KafkaError.OFFSET_NOT_AVAILABLE))
        if self._state is None or self.position < first:
            # Records that were trimmed are replaced by a snapshot behind them.
            self._state, self.position = self._begin(first), first
        if self.position > end:
            raise ChannelError(
                f"the topic {self.topic} ends before record {end}, but had {self.position} records before: "
                "the cluster has lost some, or the topic was made anew; restore it, or start anew"
            )
        while self.position < end:
            records = connection.read(self.topic, LOG, self.position, end)
            for record in records:
                self._apply(record, self._state)
            if not records:
                # The last records of a compacted topic may be gone.
                self.position = end

    def _apply(self, record: Record, state: State) -> None:
        state.apply(record)
        self.position = record.offset + 1
