"""The channels of a network on a NATS server, and what is announced there."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from nats.js.errors import KeyNotFoundError, KeyWrongLastSequenceError, NotFoundError

from braid.channels.announced import Announced, DocumentReader, enveloped
from braid.channels.jetstream.channel import JetStreamChannel
from braid.channels.jetstream.connection import NatsSession, connection_of
from braid.channels.jetstream.document import remove
from braid.channels.jetstream.marks import ChannelStream
from braid.channels.jetstream.options import NatsOptions
from braid.channels.plain_names import plain_name

Answer = TypeVar("Answer")


class NatsChannels:
    """A stream for each channel, and one bucket of documents; `prefix` sets it apart from others on the server."""

    def __init__(self, url: str | list[str], **options: Any) -> None:
        self._options = NatsOptions.from_json({"url": url, **options})
        self._reader = DocumentReader()

    def open(self, name: str, keep: int = 0) -> JetStreamChannel:
        return JetStreamChannel(self._options, name, keep)

    def remove(self, name: str) -> None:
        async def remove_both(session: NatsSession) -> None:
            # The stream first: a channel that is opened without its stream begins with a new document.
            try:
                await session.streams.delete_stream(ChannelStream.of(name, self._options).name)
            except NotFoundError:
                return
            await remove(session, name)

        self._run(f"removing channel '{name}'", remove_both)

    def announce(self, kind: str, key: str, document: Mapping[str, Any]) -> None:
        data = enveloped(key, document)
        self._run(f"announcing {kind} '{key}'", lambda session: session.bucket.put(_key(kind, key), data))

    def announce_new(self, kind: str, key: str, document: Mapping[str, Any]) -> bool:
        # The request may be repeated after the server has carried it out: so a document tells who wrote it.
        data = enveloped(key, document, author=secrets.token_hex(8))

        async def create(session: NatsSession) -> bool:
            try:
                await session.bucket.create(_key(kind, key), data)
            except KeyWrongLastSequenceError:
                return (await session.bucket.get(_key(kind, key))).value == data
            return True

        return self._run(f"announcing {kind} '{key}'", create)

    def announced(self, kind: str) -> Announced:
        return self._run(f"asking for announced {kind}", lambda session: self._announced(session, kind))

    @property
    def damaged_documents(self) -> int:
        return self._reader.damaged

    def withdraw(self, kind: str, key: str) -> None:
        async def withdraw(session: NatsSession) -> None:
            try:
                await session.bucket.get(_key(kind, key))
            except KeyNotFoundError:
                return
            await session.bucket.delete(_key(kind, key))

        self._run(f"withdrawing {kind} '{key}'", withdraw)

    def to_json(self) -> dict[str, Any]:
        return self._options.to_json()

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> NatsChannels:
        options = {name: value for name, value in content.items() if name not in ("kind", "url")}
        return cls(content.get("url", []), **options)

    def _run(self, what: str, action: Callable[[NatsSession], Awaitable[Answer]]) -> Answer:
        return connection_of(self._options).run(what, action)

    async def _announced(self, session: NatsSession, kind: str) -> Announced:
        bucket = self._options.prefix
        documents = Announced()
        sequence = 0
        while True:
            try:
                message = await session.streams.get_msg(
                    f"KV_{bucket}", sequence + 1, f"$KV.{bucket}.{_key(kind)}.*", next=True
                )
            except NotFoundError:
                return documents
            sequence = message.seq or 0
            if not message.data:
                continue  # withdrawn
            subject = message.subject or ""
            place = f"{subject} on the NATS server"
            self._reader.add_enveloped(documents, kind, subject.rpartition(".")[2], place, message.data)


def _key(*names: str) -> str:
    return ".".join(["announced", *map(plain_name, names)])
