"""A connection to a Kafka cluster: appending to partitions, reading them, and trying again.

What is asked of the cluster is a function that may run again: when brokers do not answer, it runs anew until the
patience is used up. So it must ask what is there before it changes anything.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from braid.channels.kafka.failures import UNKNOWN_TOPIC, may_pass, with_hint
from braid.channels.kafka.options import KafkaOptions, Settings
from braid.channels.kafka.records import NewRecord, Record
from braid.errors import ChannelError

logger = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0
"""Seconds between attempts to reach the cluster: each pause is twice the one before."""

MOST_AHEAD = 8
"""Partitions of which records are kept that came along with others."""

MOST_RECORDS = 10_000
"""Records that one call to the client takes at most."""

Answer = TypeVar("Answer")


class Connection:
    """The clients of one process for one cluster, each made when it is first needed. Threads may share them."""

    def __init__(self, servers: tuple[str, ...], client: Settings, timeout: float) -> None:
        self._servers = servers
        self._client = dict(client)
        self.timeout = timeout
        self.followers: dict[str, Any] = {}
        """What this process has read of each log, by topic."""
        self._ahead: dict[tuple[str, int], dict[int, Record]] = {}
        """Records that came along with others, by partition and offset: who reads on finds them here."""
        self._reading, self._sending = threading.Lock(), threading.Lock()
        self._reason: KafkaError | None = None
        """The last error that a client has reported on its own: why an answer does not come."""

    def run(self, what: str, patience: float, action: Callable[[Connection], Answer]) -> Answer:
        """The answer of the cluster. `what` says in errors what is done: "reading batch 3 of channel 'x'"."""
        started, pause = time.monotonic(), FIRST_PAUSE
        request = f"{what} at the Kafka cluster {', '.join(self._servers)}"
        while True:
            try:
                answer = action(self)
            except KafkaException as problem:
                error = self._cause(problem)
                if error.fatal():
                    self.__dict__.pop("_producer", None)
                elif not may_pass(error):
                    raise ChannelError(f"{request}: {with_hint(error)}") from problem
                waited = time.monotonic() - started
                if waited >= patience:
                    raise ChannelError(
                        f"{request}: {error.str()}; tried for {waited:.1f} s; "
                        "start the brokers or check the addresses; what was published stays, and nothing is lost"
                    ) from problem
                logger.warning("%s: %s; trying again", request, error.str())
            else:
                if pause > FIRST_PAUSE:
                    logger.warning("%s: the cluster answers again", request)
                return answer
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def append(self, topic: str, partition: int, records: Sequence[NewRecord]) -> list[int]:
        """Append records; returns their offsets when all replicas that are in sync have them."""
        offsets: dict[int, int] = {}
        failures: list[KafkaError] = []

        def done(position: int) -> Callable[[KafkaError | None, Message], None]:
            def delivered(error: KafkaError | None, message: Message) -> None:
                if error is not None:
                    failures.append(error)
                else:
                    offsets[position] = _offset(message)

            return delivered

        with self._sending:
            for position, record in enumerate(records):
                self._send(topic, partition, record, done(position))
            while len(offsets) + len(failures) < len(records):
                self._producer.poll(self.timeout)
        if failures:
            raise KafkaException(failures[0])
        return [offsets[position] for position in range(len(records))]

    def _send(self, topic: str, partition: int, record: NewRecord, delivered: Callable[..., None]) -> None:
        headers: dict[str, str | bytes | None] = {**(record.headers or {})}
        while True:
            try:
                self._producer.produce(
                    topic, record.value, record.key, partition, on_delivery=delivered, headers=headers
                )
                return
            except BufferError:
                # The queue of the client is full: wait until some records have arrived.
                self._producer.poll(0.1)

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """The first offset of a partition, and the one behind its last record."""
        where = TopicPartition(topic, partition)
        try:
            return self._consumer.get_watermark_offsets(where, self.timeout)
        except KafkaException as problem:
            # The client remembers that there was no such topic until it asks for the topic itself.
            if problem.args[0].code() not in UNKNOWN_TOPIC or not self.partitions(topic):
                raise
        return self._consumer.get_watermark_offsets(where, self.timeout)

    def read(self, topic: str, partition: int, start: int, stop: int) -> list[Record]:
        """The records from an offset up to another one. Fewer if the partition ends before."""
        with self._reading:
            ahead = self._ahead.pop((topic, partition), {})
            if all(offset in ahead for offset in range(start, stop)):
                records = [ahead.pop(offset) for offset in range(start, stop)]
            else:
                records, ahead = self._fetch(TopicPartition(topic, partition, start), stop)
            if ahead:
                self._ahead[topic, partition] = ahead
                while len(self._ahead) > MOST_AHEAD:
                    del self._ahead[next(iter(self._ahead))]
        return records

    def _fetch(self, where: TopicPartition, stop: int) -> tuple[list[Record], dict[int, Record]]:
        """The records up to an offset, and those behind them that came along."""
        records: list[Record] = []
        self._consumer.assign([where])
        try:
            while not records or records[-1].offset < stop - 1:
                messages = self._consumer.consume(min(MOST_RECORDS, stop - where.offset - len(records)), self.timeout)
                if not messages:
                    raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
                for message in messages:
                    error = message.error()
                    if error is None:
                        records.append(_record(message))
                    elif error.code() == KafkaError._PARTITION_EOF:
                        return records, {}
                    else:
                        raise KafkaException(error)
            more = [message for message in self._consumer.consume(MOST_RECORDS, 0) if message.error() is None]
            return records, {record.offset: record for record in map(_record, more)}
        finally:
            self._consumer.unassign()

    @cached_property
    def admin(self) -> AdminClient:
        return AdminClient(self._settings({}))

    def partitions(self, topic: str, create: bool = False) -> int:
        """How many partitions a topic has; 0 if it is not there. `create` lets the brokers create it."""
        client = self._producer if create else self._consumer
        metadata = client.list_topics(topic, timeout=self.timeout).topics[topic]
        if metadata.error is not None and not may_pass(metadata.error):
            raise KafkaException(metadata.error)
        return len(metadata.partitions)

    def close(self) -> None:
        if "_consumer" in self.__dict__:
            self._consumer.close()

    @cached_property
    def _producer(self) -> Producer:
        return Producer(
            self._settings(
                {
                    "acks": "all",
                    "enable.idempotence": True,
                    "linger.ms": 0,
                    "message.timeout.ms": int(1000 * self.timeout),
                }
            )
        )

    @cached_property
    def _consumer(self) -> Consumer:
        # It reads ranges that it knows to be there: so it never waits for more to come, and belongs to no group.
        return Consumer(
            self._settings(
                {
                    "group.id": "braid",
                    "enable.auto.commit": False,
                    "enable.partition.eof": True,
                    "auto.offset.reset": "error",
                    "check.crcs": True,
                    "fetch.wait.max.ms": 1,
                    "fetch.error.backoff.ms": 20,
                    "fetch.queue.backoff.ms": 10,
                    "queued.max.messages.kbytes": 4 * 1024,
                }
            )
        )

    def _settings(self, own: dict[str, Any]) -> dict[str, Any]:
        def failed(error: KafkaError) -> None:
            # That all brokers are down is what a client says last; why is what it said before.
            known = self._reason
            if known is None or (may_pass(known) and error.code() != KafkaError._ALL_BROKERS_DOWN):
                self._reason = error

        shared = {
            "bootstrap.servers": ",".join(self._servers),
            "client.id": "braid",
            "log_level": 0,
            "socket.timeout.ms": int(1000 * self.timeout),
            "reconnect.backoff.max.ms": 1000,
            "error_cb": failed,
        }
        return {**shared, **own, **self._client}

    def _cause(self, problem: KafkaException) -> KafkaError:
        """Why an answer did not come is what a client reports on its own; the call only says that it has waited."""
        if "_producer" in self.__dict__:
            self._producer.poll(0)
        if "_consumer" in self.__dict__:
            with self._reading:
                self._consumer.poll(0)
        reason, self._reason = self._reason, None
        error: KafkaError = problem.args[0]
        if reason is not None and may_pass(error):
            return reason
        return error


def _record(message: Message) -> Record:
    pairs: Any = message.headers() or []
    headers = {name: value or b"" for name, value in pairs}
    return Record(_offset(message), _bytes(message.key()) or b"", _bytes(message.value()), headers)


def _offset(message: Message) -> int:
    offset = message.offset()
    assert offset is not None
    return offset


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


_connections: dict[tuple[Any, ...], Connection] = {}
_opening = threading.Lock()


def connection_of(options: KafkaOptions) -> Connection:
    """The connection of this process to a cluster. All channels there share it; a forked process has its own."""
    key = (os.getpid(), options.servers, options.client, options.timeout)
    with _opening:
        if key not in _connections:
            _connections[key] = Connection(options.servers, options.client, options.timeout)
        return _connections[key]


def close_connections() -> None:
    """Close all connections of this process; who needs one later gets a new one."""
    with _opening:
        for key in [key for key in _connections if key[0] == os.getpid()]:
            _connections.pop(key).close()


atexit.register(close_connections)
