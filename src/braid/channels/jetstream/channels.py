"""The channels of a network on a NATS server, and what is announced there."""

from __future__ import annotations

import json
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from nats.js.errors import KeyNotFoundError, KeyWrongLastSequenceError, NotFoundError

from braid.channels.channels import plain_name
from braid.channels.jetstream.channel import JetStreamChannel
from braid.channels.jetstream.connection import NatsSession, connection_of
from braid.channels.jetstream.document import remove
from braid.channels.jetstream.marks import ChannelStream
from braid.channels.jetstream.options import NatsOptions
from braid.errors import ChannelError

Answer = TypeVar("Answer")


class NatsChannels:
    """A stream for each channel, and one bucket of documents; `prefix` sets it apart from others on the server."""

    def __init__(self, url: str | list[str], **options: Any) -> None:
        self._options = NatsOptions.from_json({"url": url, **options})

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
        data = json.dumps({"key": key, "document": document}).encode()
        self._run(f"announcing {kind} '{key}'", lambda session: session.bucket.put(_key(kind, key), data))

    def announce_new(self, kind: str, key: str, document: Mapping[str, Any]) -> bool:
        # The request may be repeated after the server has carried it out: so a document tells who wrote it.
        data = json.dumps({"key": key, "document": document, "author": secrets.token_hex(8)}).encode()

        async def create(session: NatsSession) -> bool:
            try:
                await session.bucket.create(_key(kind, key), data)
            except KeyWrongLastSequenceError:
                return (await session.bucket.get(_key(kind, key))).value == data
            return True

        return self._run(f"announcing {kind} '{key}'", create)

    def announced(self, kind: str) -> dict[str, dict[str, Any]]:
        return self._run(f"asking for announced {kind}", lambda session: self._announced(session, kind))

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

    async def _announced(self, session: NatsSession, kind: str) -> dict[str, dict[str, Any]]:
        bucket = self._options.prefix
        documents: dict[str, dict[str, Any]] = {}
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
            try:
                content = json.loads(message.data)
                documents[str(content["key"])] = dict(content["document"])
            except (ValueError, KeyError, TypeError) as error:
                raise ChannelError(
                    f"cannot read the announced {kind} {message.subject} on the NATS server: {error}; remove it"
                ) from error


def _key(*names: str) -> str:
    return ".".join(["announced", *map(plain_name, names)])
