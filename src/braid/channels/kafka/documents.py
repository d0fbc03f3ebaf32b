"""Announced documents: a compacted topic, which keeps the last record of each key.

A document has the key [kind, key]. One that is announced as new counts only if there is none before it in the log. It
has a key of its own, [kind, key, attempt]: otherwise compaction would keep the last such record instead of the first.
What is announced or withdrawn later replaces all of them, so they are deleted then.
"""

from __future__ import annotations

import json
import secrets
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from confluent_kafka import KafkaException

from braid.channels.announced import Announced, DocumentReader
from braid.channels.kafka import topics
from braid.channels.kafka.connection import Connection
from braid.channels.kafka.failures import UNKNOWN_TOPIC
from braid.channels.kafka.follower import Follower
from braid.channels.kafka.options import KafkaOptions
from braid.channels.kafka.records import Record
from braid.errors import ChannelError
from braid.model.checks import shown

Name = tuple[str, str]
"""The kind and the key of a document."""

WITHDRAWN = b"null"
"""What is written in the place of a document that is withdrawn."""


class Documents:
    """The documents after some records of the log."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self.texts: dict[Name, bytes] = {}
        """The documents as JSON, also those that are damaged."""
        self.foreign: list[Record] = []
        """Records that are no documents, by their keys."""
        self.authors: dict[Name, str] = {}
        """The attempts to announce a document as new that count."""
        self.replaced: dict[Name, list[str]] = defaultdict(list)
        """The attempts to announce a document as new whose records another record has replaced."""
        self._attempts: dict[Name, list[str]] = defaultdict(list)

    def of_kind(self, kind: str, reader: DocumentReader) -> Announced:
        announced = Announced()
        for (each, key), text in self.texts.items():
            if each == kind:
                reader.add(announced, kind, key, f"'{key}' in the topic {self._topic}", text)
        for record in self.foreign:
            what = f"record {record.offset} of the topic {self._topic}"
            reader.tell(what, record.key, ChannelError(f"its key, {shown(record.key)}, is not that of a document"))
        return announced

    def apply(self, record: Record) -> None:
        parts = _parts(record.key)
        if parts is None:
            self.foreign = [other for other in self.foreign if other.key != record.key]
            if record.value is not None:
                self.foreign.append(record)
            return
        kind, key, *attempts = parts
        if attempts and record.value is None:
            self._forget((kind, key), attempts[0])
        elif attempts:
            self._add((kind, key), record.value or b"", attempts[0])
        else:
            self._replace((kind, key), None if record.value == WITHDRAWN else record.value)

    def _add(self, name: Name, text: bytes, attempt: str) -> None:
        self._attempts[name].append(attempt)
        if name not in self.texts:
            self.texts[name] = text
            self.authors[name] = attempt

    def _replace(self, name: Name, text: bytes | None) -> None:
        self.authors.pop(name, None)
        self.replaced[name] += self._attempts.pop(name, [])
        if text is None:
            self.texts.pop(name, None)
        else:
            self.texts[name] = text

    def _forget(self, name: Name, attempt: str) -> None:
        """The record of an attempt that was replaced is deleted."""
        left = [each for each in self.replaced.pop(name, []) if each != attempt]
        if left:
            self.replaced[name] = left


class DocumentTopic:
    """The topic of a network that has its documents."""

    def __init__(self, options: KafkaOptions) -> None:
        self._options = options
        self._topic = f"{options.prefix}.documents"
        self._reader = DocumentReader()

    @property
    def damaged(self) -> int:
        """How many damaged documents were read. Each is counted once."""
        return self._reader.damaged

    def announced(self, connection: Connection, kind: str) -> Announced:
        with self._read(connection) as documents:
            return documents.of_kind(kind, self._reader)

    def announce(self, connection: Connection, kind: str, key: str, document: Mapping[str, Any] | None) -> None:
        """Put a document in the place of the one that is there, or nothing in its place."""
        text = None if document is None else json.dumps(document).encode()
        with self._read(connection) as documents:
            if documents.texts.get((kind, key)) == text:
                return
        follower = self._follower(connection)
        written = follower.append(connection, json.dumps([kind, key]), text or WITHDRAWN)
        with self._read(connection, written) as documents:
            replaced = list(documents.replaced.get((kind, key), []))
        for attempt in replaced:
            follower.append(connection, json.dumps([kind, key, attempt]), None)

    def announce_new(
        self, connection: Connection, kind: str, key: str, document: Mapping[str, Any], attempt: str
    ) -> bool:
        """Write a document unless there is one; also True if this attempt has written it before."""
        written = None
        with self._read(connection) as documents:
            there = (kind, key) in documents.texts
        if not there:
            name = json.dumps([kind, key, attempt])
            written = self._follower(connection).append(connection, name, json.dumps(document).encode())
        with self._read(connection, written) as documents:
            return documents.authors.get((kind, key)) == attempt

    @contextmanager
    def _read(self, connection: Connection, written: Record | None = None) -> Iterator[Documents]:
        with ExitStack() as stack:
            try:
                documents = stack.enter_context(self._follower(connection).caught_up(connection, written))
            except KafkaException as problem:
                if problem.args[0].code() not in UNKNOWN_TOPIC:
                    raise
                topics.create(connection, self._options, self._topic, 1, topics.COMPACTED)
                documents = stack.enter_context(self._follower(connection).caught_up(connection, written))
            yield documents

    def _follower(self, connection: Connection) -> Follower[Documents]:
        return Follower.of(connection, self._topic, lambda first: Documents(self._topic))


def _parts(key: bytes) -> list[str] | None:
    """The kind and the key of a document and perhaps the attempt, from the key of a record; None if it has others."""
    try:
        parts = json.loads(key)
    except (ValueError, TypeError, RecursionError):
        return None
    is_key = isinstance(parts, list) and len(parts) in (2, 3) and all(isinstance(part, str) for part in parts)
    return parts if is_key else None


def new_attempt() -> str:
    """A name for one attempt to write something: its author finds out by it whether it was the first."""
    return secrets.token_hex(8)
