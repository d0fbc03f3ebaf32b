"""A Kafka broker in memory for tests, with as much of the protocol as channels use.

Unlike the cluster that the client library simulates (`kafka_cluster.py`), it creates and deletes topics and deletes
records by request, asks for a password, encrypts, and loses answers. It has no transactions, groups, ACLs, replicas or
compaction.
"""

from __future__ import annotations

import random
import socket
import socketserver
import ssl
import struct
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from braid.testing.kafka_wire import RequestReader, array, text

PRODUCE, FETCH, LIST_OFFSETS, METADATA, FIND_COORDINATOR = 0, 1, 2, 3, 10
API_VERSIONS, CREATE_TOPICS, DELETE_TOPICS, DELETE_RECORDS, INIT_PRODUCER = 18, 19, 20, 21, 22
SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36
VERSIONS = {
    PRODUCE: 3,
    FETCH: 4,
    LIST_OFFSETS: 1,
    METADATA: 4,
    FIND_COORDINATOR: 0,
    API_VERSIONS: 0,
    CREATE_TOPICS: 4,
    DELETE_TOPICS: 1,
    DELETE_RECORDS: 0,
    INIT_PRODUCER: 0,
    SASL_HANDSHAKE: 1,
    SASL_AUTHENTICATE: 0,
}
"""The one version of each request that this broker takes."""

NO_ERROR, OUT_OF_RANGE, UNKNOWN_TOPIC, NO_COORDINATOR, UNSUPPORTED_VERSION, TOPIC_EXISTS = 0, 1, 3, 15, 35, 36
WRONG_PASSWORD = 58

EARLIEST = -2
"""The time that asks for the first offset."""


@dataclass
class PartitionLog:
    """Record batches as they came, by the offset of their first record."""

    first: int = 0
    end: int = 0
    batches: list[tuple[int, int, bytes]] = field(default_factory=list)
    """The first offset, the one behind the last, and the bytes."""

    def append(self, data: bytes) -> int:
        base = self.end
        while data:
            size = 12 + struct.unpack_from(">i", data, 8)[0]
            count = struct.unpack_from(">i", data, 23)[0] + 1
            self.batches.append((self.end, self.end + count, struct.pack(">q", self.end) + data[8:size]))
            self.end += count
            data = data[size:]
        return base

    def read(self, offset: int, most_bytes: int) -> bytes:
        records = b""
        for _, end, data in self.batches:
            if end > offset and (not records or len(records) + len(data) <= most_bytes):
                records += data
        return records

    def delete(self, before: int) -> None:
        self.first = max(self.first, before)
        self.batches = [batch for batch in self.batches if batch[1] > self.first]


@dataclass
class Topic:
    partitions: list[PartitionLog]
    settings: dict[str, str]


class KafkaBroker:
    """A broker on a free port that only this machine reaches.

    `losing` is how often it loses an answer, of 1. `login` is a user and a password that the broker asks for (SASL,
    PLAIN), and `tls` encrypts its connections.
    """

    def __init__(
        self,
        losing: float = 0.0,
        seed: int = 0,
        login: tuple[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.topics: dict[str, Topic] = {}
        self.losing = losing
        self.tls = tls
        self._login = login
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._port = 0
        self._server: _Server | None = None

    @property
    def channels(self) -> dict[str, Any]:
        """The description of channels on this broker."""
        return {"kind": "kafka", "servers": [f"127.0.0.1:{self._port}"]}

    def start(self) -> None:
        """Start the broker, with the port and the topics that it had before."""
        self._server = server = _Server(("127.0.0.1", self._port), _Handler)
        server.broker = self
        self._port = server.server_address[1]
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def stop(self) -> None:
        """End the broker and all connections to it."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def __enter__(self) -> KafkaBroker:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def answer(self, request: bytes) -> bytes | None:
        """The answer to a request; None if it gets lost, or the broker does not know such requests."""
        reader = RequestReader(request)
        kind, version, correlation = reader.integers("hhi")
        if kind != API_VERSIONS:
            reader.text()  # the name of the client
        answer = struct.pack(">i", correlation)
        if kind == API_VERSIONS:
            wrong = version != VERSIONS[kind]
            return answer + struct.pack(">h", UNSUPPORTED_VERSION if wrong else NO_ERROR) + _versions()
        if kind not in HANDLERS or version != VERSIONS[kind]:
            return None
        with self._lock:
            answer += HANDLERS[kind](self, reader)
            lost = kind in (PRODUCE, CREATE_TOPICS) and self._random.random() < self.losing
        return None if lost else answer

    def _partition(self, topic: str, partition: int) -> PartitionLog | None:
        known = self.topics.get(topic)
        return known.partitions[partition] if known is not None and partition < len(known.partitions) else None

    def _metadata(self, reader: RequestReader) -> bytes:
        names = reader.texts()
        known = list(self.topics) if names is None else names
        brokers = array([struct.pack(">i", 1) + text("127.0.0.1") + struct.pack(">i", self._port) + text(None)])
        return struct.pack(">i", 0) + brokers + text(None) + struct.pack(">i", 1) + array(map(self._described, known))

    def _described(self, name: str) -> bytes:
        count = len(self.topics[name].partitions) if name in self.topics else 0
        replicas = array([struct.pack(">i", 1)])
        partitions = [struct.pack(">hii", NO_ERROR, index, 1) + replicas + replicas for index in range(count)]
        error = NO_ERROR if count else UNKNOWN_TOPIC
        return struct.pack(">h", error) + text(name) + b"\0" + array(partitions)

    def _produce(self, reader: RequestReader) -> bytes:
        reader.text()  # the transaction
        reader.integers("hi")

        def produce(topic: str) -> bytes:
            (index,) = reader.integers("i")
            data = reader.data()
            partition = self._partition(topic, index)
            if partition is None:
                return struct.pack(">ihqq", index, UNKNOWN_TOPIC, -1, -1)
            return struct.pack(">ihqq", index, NO_ERROR, partition.append(data), -1)

        return reader.by_topic(produce) + struct.pack(">i", 0)

    def _fetch(self, reader: RequestReader) -> bytes:
        reader.integers("iiiib")

        def fetch(topic: str) -> bytes:
            index, offset, most_bytes = reader.integers("iqi")
            partition = self._partition(topic, index)
            if partition is None:
                return struct.pack(">ihqqii", index, UNKNOWN_TOPIC, -1, -1, 0, 0)
            if not partition.first <= offset <= partition.end:
                return struct.pack(">ihqqii", index, OUT_OF_RANGE, -1, -1, 0, 0)
            data = partition.read(offset, most_bytes)
            end = partition.end
            return struct.pack(">ihqqii", index, NO_ERROR, end, end, 0, len(data)) + data

        return struct.pack(">i", 0) + reader.by_topic(fetch)

    def _list_offsets(self, reader: RequestReader) -> bytes:
        reader.integers("i")

        def offset(topic: str) -> bytes:
            index, moment = reader.integers("iq")
            partition = self._partition(topic, index)
            if partition is None:
                return struct.pack(">ihqq", index, UNKNOWN_TOPIC, -1, -1)
            return struct.pack(">ihqq", index, NO_ERROR, -1, partition.first if moment == EARLIEST else partition.end)

        return reader.by_topic(offset)

    def _create_topics(self, reader: RequestReader) -> bytes:
        def create() -> bytes:
            name = reader.text() or ""
            count, _ = reader.integers("ih")
            reader.array(lambda: None)  # which brokers
            settings = dict(reader.array(lambda: (reader.text() or "", reader.text() or "")))
            error = TOPIC_EXISTS if name in self.topics else NO_ERROR
            self.topics.setdefault(name, Topic([PartitionLog() for _ in range(count)], settings))
            return text(name) + struct.pack(">h", error) + text(None)

        return struct.pack(">i", 0) + array(reader.array(create))

    def _delete_topics(self, reader: RequestReader) -> bytes:
        def delete(name: str) -> bytes:
            there = self.topics.pop(name, None) is not None
            return text(name) + struct.pack(">h", NO_ERROR if there else UNKNOWN_TOPIC)

        return struct.pack(">i", 0) + array(map(delete, reader.texts() or []))

    def _delete_records(self, reader: RequestReader) -> bytes:
        def delete(topic: str) -> bytes:
            index, before = reader.integers("iq")
            partition = self._partition(topic, index)
            if partition is None or before > partition.end:
                return struct.pack(">iqh", index, -1, UNKNOWN_TOPIC if partition is None else OUT_OF_RANGE)
            partition.delete(before)
            return struct.pack(">iqh", index, partition.first, NO_ERROR)

        return struct.pack(">i", 0) + reader.by_topic(delete)

    def _init_producer(self, reader: RequestReader) -> bytes:
        return struct.pack(">ihqh", 0, NO_ERROR, self._random.randrange(1 << 40), 0)

    def _sasl_handshake(self, reader: RequestReader) -> bytes:
        return struct.pack(">h", NO_ERROR) + array([text("PLAIN")])

    def _sasl_authenticate(self, reader: RequestReader) -> bytes:
        _, user, password = reader.data().decode().split("\0")
        if (user, password) == self._login:
            return struct.pack(">h", NO_ERROR) + text(None) + struct.pack(">i", 0)
        return struct.pack(">h", WRONG_PASSWORD) + text("wrong user or password") + struct.pack(">i", 0)

    def _find_coordinator(self, reader: RequestReader) -> bytes:
        return struct.pack(">hi", NO_COORDINATOR, -1) + text("") + struct.pack(">i", -1)


HANDLERS: dict[int, Callable[[KafkaBroker, RequestReader], bytes]] = {
    PRODUCE: KafkaBroker._produce,
    FETCH: KafkaBroker._fetch,
    LIST_OFFSETS: KafkaBroker._list_offsets,
    METADATA: KafkaBroker._metadata,
    FIND_COORDINATOR: KafkaBroker._find_coordinator,
    CREATE_TOPICS: KafkaBroker._create_topics,
    DELETE_TOPICS: KafkaBroker._delete_topics,
    DELETE_RECORDS: KafkaBroker._delete_records,
    INIT_PRODUCER: KafkaBroker._init_producer,
    SASL_HANDSHAKE: KafkaBroker._sasl_handshake,
    SASL_AUTHENTICATE: KafkaBroker._sasl_authenticate,
}


def _versions() -> bytes:
    return array(struct.pack(">hhh", kind, version, version) for kind, version in VERSIONS.items())


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    broker: KafkaBroker

    def __init__(self, address: tuple[str, int], handler: type[_Handler]) -> None:
        super().__init__(address, handler)
        self.open: set[socket.socket] = set()

    def server_close(self) -> None:
        super().server_close()
        for connection in list(self.open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class _Handler(socketserver.BaseRequestHandler):
    """Answers the requests of one connection until it ends, or an answer gets lost with it."""

    server: _Server

    def setup(self) -> None:
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.server.open.add(self.request)

    def finish(self) -> None:
        self.server.open.discard(self.request)

    def handle(self) -> None:
        tls = self.server.broker.tls
        with suppress(OSError), ExitStack() as stack:
            connection = self.request
            if tls is not None:
                connection = stack.enter_context(tls.wrap_socket(connection, server_side=True))
            stream = stack.enter_context(connection.makefile("rb"))
            while len(prefix := stream.read(4)) == 4:
                answer = self.server.broker.answer(stream.read(struct.unpack(">i", prefix)[0]))
                if answer is None:
                    break
                connection.sendall(struct.pack(">i", len(answer)) + answer)
