"""A channel on a NATS server: a JetStream stream of its own.

A batch is its payload, cut into chunks, and then a mark, which is its head and counts the chunks before it. The server
takes every message only if it comes directly behind the one that the publisher knows. So the chunks of a batch lie
directly before its mark, a batch is there from its mark on, and of two publishers one is refused. Chunks without a mark
are what a publisher left that died.

How far the channel was released and removed is a document in the bucket of the network. Removed batches are purged up
to the mark of the newest one of them: that mark stays, so that numbers go on from there.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from nats.errors import NoRespondersError
from nats.js.api import DiscardPolicy
from nats.js.errors import NoStreamResponseError, NotFoundError, ServiceUnavailableError

from braid.channels.batch import NONE, Batch, Entry
from braid.channels.channel import check_whole, missing
from braid.channels.jetstream.connection import NatsSession, connection_of
from braid.channels.jetstream.document import Document, load
from braid.channels.jetstream.marks import NO_STREAM, ChannelStream, Mark
from braid.channels.jetstream.options import NatsOptions
from braid.channels.jetstream.publishing import IN_FLIGHT, Publishing
from braid.channels.retention import Subscribers, unneeded
from braid.errors import ChannelError

Answer = TypeVar("Answer")


class JetStreamChannel:
    """One channel in a stream of its own."""

    def __init__(self, options: NatsOptions, name: str, keep: int = 0) -> None:
        self._options = options
        self._name = name
        self._stream = ChannelStream.of(name, options)
        self._following: dict[int, Mark] = {}
        """The batch that follows another one, by the number of that: what was published does not change."""
        self._purged = NONE
        self._run("opening", lambda session: self._open(session, keep))

    @property
    def name(self) -> str:
        return self._name

    def publish(self, batch: Batch) -> bool:
        return self._run(f"publishing batch {batch.number} on", Publishing(self._stream, batch))

    def last(self) -> Entry | None:
        mark = self._run("asking for the last batch of", self._stream.last_mark)
        return None if mark is None else mark.entry

    def entries(self, after: int, most_bytes: int | None = None) -> Sequence[Entry]:
        return self._run("asking for batches of", lambda session: self._entries(session, after, most_bytes))

    def read(self, number: int) -> Batch:
        return self._run(f"reading batch {number} of", lambda session: self._read(session, number))

    def subscribe(self, subscriber: str, after: int = NONE) -> None:
        self._change("subscribing to", lambda subscribers: subscribers.add(subscriber, after))

    def release(self, subscriber: str, upto: int) -> None:
        self._change("releasing batches of", lambda subscribers: subscribers.release(subscriber, upto))

    def unsubscribe(self, subscriber: str) -> None:
        self._change("unsubscribing from", lambda subscribers: subscribers.remove(subscriber))

    def released(self) -> Mapping[str, int]:
        return self._run("asking for the subscribers of", self._released)

    async def _released(self, session: NatsSession) -> Mapping[str, int]:
        return (await load(session, self._name)).released

    def _run(self, what: str, action: Callable[[NatsSession], Awaitable[Answer]]) -> Answer:
        return connection_of(self._options).run(
            f"{what} channel '{self._name}'", lambda session: self._on_the_stream(session, action)
        )

    async def _on_the_stream(self, session: NatsSession, action: Callable[[NatsSession], Awaitable[Answer]]) -> Answer:
        try:
            try:
                return await action(session)
            except (NoRespondersError, NoStreamResponseError):
                # JetStream is not ready, or there is no such stream. If it is the latter, this tells.
                await session.streams.stream_info(self._stream.name)
                raise
        except NotFoundError as error:
            if error.err_code != NO_STREAM:
                raise
            raise ChannelError(f"channel '{self._name}' was removed; open it again if it is needed") from error

    async def _open(self, session: NatsSession, keep: int) -> None:
        """Make the stream with a new document, unless it is there: then the document belongs to it."""
        while True:
            document = await load(session, self._name)
            try:
                config = (await session.streams.stream_info(self._stream.name)).config
            except NotFoundError:
                if await document.reset(session):
                    await self._create(session)
                continue
            if config.max_age or max(config.max_msgs or 0, config.max_msgs_per_subject or 0) > 0:
                raise ChannelError(
                    f"the stream {self._stream.name} of channel '{self._name}' has a limit by age or by number of "
                    "messages, by which batches would get lost; take it away"
                )
            if keep <= document.keep or await replace(document, keep=keep).store(session):
                return

    async def _create(self, session: NatsSession) -> None:
        # A stream that is full must refuse batches instead of dropping those that nobody has read.
        await session.streams.add_stream(
            name=self._stream.name,
            subjects=self._stream.subjects,
            discard=DiscardPolicy.NEW,
            allow_direct=True,
            num_replicas=self._options.replicas,
        )

    async def _entries(self, session: NatsSession, after: int, most_bytes: int | None) -> list[Entry]:
        removed = (await load(session, self._name)).removed
        entries: list[Entry] = []
        total = 0
        async for mark in self._marks(session, max(after, removed)):
            total += mark.entry.bytes
            if entries and most_bytes is not None and total > most_bytes:
                break
            entries.append(mark.entry)
        check_whole(self._name, entries, after, removed)
        return entries

    async def _marks(self, session: NatsSession, after: int) -> AsyncIterator[Mark]:
        """The marks behind that of a batch."""
        number, sequence = after, None
        while mark := self._following.get(number):
            yield mark
            number, sequence = mark.entry.number, mark.sequence
        if sequence is None:
            start = None if number == NONE else await self._stream.mark(session, number)
            sequence = 0 if start is None else start.sequence
        while marks := await self._stream.marks_behind(session, sequence):
            for mark in marks:
                if mark.entry.previous == number:
                    self._following[number] = mark
                number, sequence = mark.entry.number, mark.sequence
                if number > after:
                    yield mark

    async def _read(self, session: NatsSession, number: int) -> Batch:
        mark = await self._stream.mark(session, number)
        if mark is None:
            raise missing(self._name, number)
        taking = asyncio.Semaphore(IN_FLIGHT)

        async def chunk(sequence: int) -> bytes:
            async with taking:
                return await self._chunk(session, number, sequence)

        sequences = range(mark.sequence - mark.chunks, mark.sequence)
        payload = b"".join(await asyncio.gather(*map(chunk, sequences)))
        return Batch.from_payload(payload, mark.head, self._name)

    async def _chunk(self, session: NatsSession, number: int, sequence: int) -> bytes:
        try:
            message = await session.streams.get_msg(self._stream.name, sequence, direct=True)
        except NotFoundError:
            # A replica may be behind; the leader is not.
            try:
                message = await session.streams.get_msg(self._stream.name, sequence)
            except NotFoundError as error:
                raise missing(self._name, number) from error
        if message.subject != self._stream.subject("chunk", number):
            raise ChannelError(
                f"batch {number} of channel '{self._name}' is damaged: message {sequence} of the stream "
                f"{self._stream.name} belongs to {message.subject}; restore the stream"
            )
        return message.data or b""

    def _change(self, what: str, change: Callable[[Subscribers], bool]) -> None:
        self._run(what, lambda session: self._try_change(session, change))

    async def _try_change(self, session: NatsSession, change: Callable[[Subscribers], bool]) -> None:
        """Change the subscribers, and remove what nobody needs any more."""
        while True:
            document = await load(session, self._name)
            subscribers = Subscribers(document.released)
            if not change(subscribers):
                break
            removed = await self._removable(session, document, subscribers)
            document = replace(document, released=subscribers.released, removed=removed)
            try:
                if await document.store(session):
                    break
            except ServiceUnavailableError:
                # A full server takes no document either: make room first, or it will be full for ever.
                if removed <= self._purged:
                    raise
                await self._purge(session, removed)
        if document.removed > self._purged:
            await self._purge(session, document.removed)

    async def _removable(self, session: NatsSession, document: Document, subscribers: Subscribers) -> int:
        """The newest batch that can be removed, with all before it."""
        last = await self._stream.last_mark(session)
        if last is None:
            return document.removed
        released = subscribers.released_by_all
        entries = []
        async for mark in self._marks(session, document.removed):
            if mark.entry.number > released:
                break
            entries.append(mark.entry)
        leaving = unneeded(entries, released, document.keep, last.entry.watermark)
        return leaving[-1].number if leaving else document.removed

    async def _purge(self, session: NatsSession, removed: int) -> None:
        mark = await self._stream.mark(session, removed)
        if mark is not None:
            await session.streams.purge_stream(self._stream.name, seq=mark.sequence)
        self._following = {number: mark for number, mark in self._following.items() if number >= removed}
        self._purged = removed
