"""Publishing a batch: its chunks, then its mark, each only if it comes directly behind the one before."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from nats.js.api import Header, PubAck
from nats.js.errors import APIError, ServiceUnavailableError

from braid.channels.batch import Batch
from braid.channels.channel import check_follows
from braid.channels.jetstream.connection import NatsSession
from braid.channels.jetstream.marks import CHUNKS, ChannelStream
from braid.errors import ChannelError

LARGEST_CHUNK = 512 * 1024
ROOM_FOR_HEADERS = 4 * 1024
IN_FLIGHT = 16
"""Chunks that are sent before the first of them is acknowledged."""

WRONG_LAST_SEQUENCE = {10071, 10164}
"""The server's codes of the error that the message before is another one."""

ATTEMPTS = 3
"""How often to begin anew when others write to the stream at the same time."""


class Publishing:
    """Publishes one batch. May run again when the connection was lost: it asks first whether the batch is there."""

    def __init__(self, stream: ChannelStream, batch: Batch) -> None:
        self._stream = stream
        self._batch = batch
        self._mark_sent = False

    async def __call__(self, session: NatsSession) -> bool:
        batch = self._batch
        for _ in range(ATTEMPTS):
            state = (await session.streams.stream_info(self._stream.name)).state
            last = await self._stream.last_mark(session)
            if last is not None and batch.number <= last.entry.number:
                return self._mark_sent and last.data == batch.head
            check_follows(batch, None if last is None else last.entry)
            try:
                marked = 0 if last is None else last.sequence
                sequence = state.last_seq if state.last_seq == marked else await self._fence(session, state.last_seq)
                await self._send(session, sequence)
                return True
            except APIError as error:
                if error.err_code not in WRONG_LAST_SEQUENCE:
                    raise
        raise ChannelError(
            f"batch {batch.number} was not published on channel '{batch.channel}': another site publishes at the same "
            "time; let one site publish"
        )

    async def _fence(self, session: NatsSession, sequence: int) -> int:
        """Purge the chunks of a publisher that died. If it is not dead, the fence is what refuses its mark."""
        await self._put(session, self._stream.subject("fence", 0), b"", sequence)
        chunks = self._stream.subject("chunk", self._batch.number)
        await session.streams.purge_stream(self._stream.name, seq=sequence + 1, subject=chunks)
        return sequence + 1

    async def _send(self, session: NatsSession, sequence: int) -> None:
        size = min(LARGEST_CHUNK, session.most_bytes - ROOM_FOR_HEADERS)
        payload = self._batch.payload
        chunks = [payload[start : start + size] for start in range(0, len(payload), size)]
        subject = self._stream.subject("chunk", self._batch.number)
        accepted: list[int] = []
        try:
            for first in range(0, len(chunks), IN_FLIGHT):
                # Tasks start in the order of the list, and send before they wait: so the server gets them in order.
                sending = [
                    session.streams.publish(subject, chunk, headers=_behind(sequence + position))
                    for position, chunk in enumerate(chunks[first : first + IN_FLIGHT], first)
                ]
                answers = await asyncio.gather(*sending, return_exceptions=True)
                accepted += [answer.seq for answer in answers if isinstance(answer, PubAck)]
                for answer in answers:
                    if isinstance(answer, BaseException):
                        raise answer
            self._mark_sent = True
            mark = self._stream.subject("mark", self._batch.number)
            await self._put(session, mark, self._batch.head, sequence + len(chunks), {CHUNKS: str(len(chunks))})
        except ServiceUnavailableError:
            await self._take_back(session, accepted)
            raise

    async def _take_back(self, session: NatsSession, accepted: list[int]) -> None:
        """Delete the chunks that the server has taken before it was full: they must not fill it for ever."""
        for sequence in accepted:
            with suppress(APIError):
                await session.streams.delete_msg(self._stream.name, sequence)

    async def _put(
        self, session: NatsSession, subject: str, data: bytes, sequence: int, headers: dict[str, str] | None = None
    ) -> None:
        await session.streams.publish(subject, data, headers=_behind(sequence) | (headers or {}))


def _behind(sequence: int) -> dict[str, str]:
    """The header by which the server takes a message only if it comes directly behind a sequence in the stream."""
    return {Header.EXPECTED_LAST_SEQUENCE: str(sequence)}
