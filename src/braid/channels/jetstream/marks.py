"""Marks: messages of a NATS stream, each of which says that a batch is complete and where it ends."""

from __future__ import annotations

from dataclasses import dataclass

from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy
from nats.js.errors import NotFoundError

from braid.channels.batch import Entry, Head
from braid.channels.jetstream.connection import NatsSession
from braid.channels.jetstream.options import NatsOptions
from braid.channels.plain_names import plain_name
from braid.errors import ChannelError

NO_STREAM = 10059
"""The code of the server's "not found" error if the whole stream is missing, not only a message."""

ONE_BY_ONE = 4
"""Marks that are asked for one by one, which is fast for a subscriber that is not behind."""

AT_ONCE = 1000
"""Further marks that are read at once."""

CHUNKS = "Braid-Chunks"
"""The header of a mark that counts the chunks before it."""


@dataclass(frozen=True)
class Mark:
    """Where a batch ends in the stream, how many chunks lie before that, and the head of the batch."""

    sequence: int
    chunks: int
    data: bytes
    head: Head

    @property
    def entry(self) -> Entry:
        return self.head.entry


@dataclass(frozen=True)
class ChannelStream:
    """The NATS stream of a channel. Marks are read from the leader of the stream, because replicas may be behind."""

    channel: str
    name: str

    @classmethod
    def of(cls, channel: str, options: NatsOptions) -> ChannelStream:
        return cls(channel, f"{options.prefix}={plain_name(channel)}")

    @property
    def subjects(self) -> list[str]:
        return [self.subject("chunk", "*"), self.subject("mark", "*"), self.subject("fence", "0")]

    def subject(self, kind: str, number: int | str) -> str:
        return f"{self.name}.{kind}.{number}"

    async def last_mark(self, session: NatsSession) -> Mark | None:
        return await self._mark(session, None, self.subject("mark", "*"))

    async def mark(self, session: NatsSession, number: int) -> Mark | None:
        return await self._mark(session, None, self.subject("mark", number))

    async def marks_behind(self, session: NatsSession, sequence: int) -> list[Mark]:
        """The next marks after a message of the stream, perhaps not all of them. It is empty only if there is none."""
        marks: list[Mark] = []
        while len(marks) < ONE_BY_ONE:
            mark = await self._mark(session, sequence + 1, self.subject("mark", "*"))
            if mark is None:
                return marks
            marks.append(mark)
            sequence = mark.sequence
        return marks + await self._many_marks(session, sequence)

    async def _many_marks(self, session: NatsSession, sequence: int) -> list[Mark]:
        config = ConsumerConfig(
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=sequence + 1,
            ack_policy=AckPolicy.NONE,
            mem_storage=True,
            num_replicas=1,
            inactive_threshold=60,
        )
        reader = await session.streams.pull_subscribe(self.subject("mark", "*"), stream=self.name, config=config)
        info = await reader.consumer_info()
        waiting = min(info.num_pending or 0, AT_ONCE)
        messages = await reader.fetch(waiting, timeout=session.timeout) if waiting else []
        await reader.unsubscribe()
        await session.streams.delete_consumer(self.name, info.name)
        return [
            self._parsed(message.subject, message.metadata.sequence.stream, message.data, message.headers)
            for message in messages
        ]

    async def _mark(self, session: NatsSession, sequence: int | None, subject: str) -> Mark | None:
        try:
            message = await session.streams.get_msg(self.name, sequence, subject, next=sequence is not None)
        except NotFoundError as error:
            if error.err_code == NO_STREAM:
                raise
            return None
        return self._parsed(message.subject or "", message.seq or 0, message.data or b"", message.headers)

    def _parsed(self, subject: str, sequence: int, data: bytes, headers: dict[str, str] | None) -> Mark:
        number = subject.rpartition(".")[2]
        if not number.isdecimal():
            raise ChannelError(
                f"channel '{self.channel}' has a message {sequence} on {subject} that is no batch; "
                f"remove what does not belong in the stream {self.name}"
            )
        head = Head.from_bytes(data, self.channel, int(number))
        chunks = (headers or {}).get(CHUNKS, "")
        if not chunks.isdecimal():
            raise ChannelError(
                f"batch {number} of channel '{self.channel}' is damaged: its mark does not tell its chunks; restore it"
            )
        return Mark(sequence, int(chunks), data, head)
