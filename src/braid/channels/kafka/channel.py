"""A channel on a Kafka cluster: a topic of its own with two partitions.

One partition has the rows: the payload of each batch, cut into chunks. The other one is the log of the channel: marks
of batches, subscriptions and releases (`channel_state.py`). A publisher writes the chunks, and when the cluster has
them all, the mark, which names their offsets. So a batch is there from its mark on. The publisher then reads the log up
to its mark, to see whether another one came first. Chunks without a mark are what a publisher left that died or lost;
they are deleted together with the rows around them.

Nothing here needs transactions: the order of one partition is all that publishers and readers must agree on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from confluent_kafka import KafkaException

from braid.channels.batch import NONE, Batch, Entry
from braid.channels.channel import check_follows, check_whole, missing
from braid.channels.kafka import channel_state as log
from braid.channels.kafka import topics
from braid.channels.kafka.channel_state import ChannelState
from braid.channels.kafka.connection import Connection, connection_of
from braid.channels.kafka.documents import new_attempt
from braid.channels.kafka.failures import GONE, UNKNOWN_TOPIC
from braid.channels.kafka.follower import LOG, Follower
from braid.channels.kafka.options import KafkaOptions
from braid.channels.kafka.records import NewRecord, Record
from braid.channels.retention import within_bytes
from braid.errors import ChannelError

ROWS = 1
"""The partition of a topic that has the rows."""

PARTITIONS = 2

LARGEST_CHUNK = 512 * 1024
ROOM_FOR_RECORD = 4 * 1024
MOST_BYTES = "message.max.bytes"
"""The setting of the client that says how large a record may be."""

SNAPSHOT_EVERY = 500
"""Records in a log before it is worth a snapshot."""

Answer = TypeVar("Answer")


class KafkaChannel:
    """One channel in a topic of its own."""

    def __init__(
        self, options: KafkaOptions, name: str, topic: str, still_there: Callable[[Connection], bool], keep: int = 0
    ) -> None:
        """`still_there` asks whether the channel still has this topic."""
        self._options = options
        self._name = name
        self._topic = topic
        self._still_there = still_there
        self._trimmed = 0
        if keep:
            self._run("opening", lambda connection: self._lengthen(connection, keep))

    @property
    def name(self) -> str:
        return self._name

    def publish(self, batch: Batch) -> bool:
        attempt = new_attempt()
        return self._run(
            f"publishing batch {batch.number} on", lambda connection: self._publish(connection, batch, attempt)
        )

    def last(self) -> Entry | None:
        return self._run("asking for the last batch of", lambda connection: self._ask(connection, _last))

    def entries(self, after: int, most_bytes: int | None = None) -> Sequence[Entry]:
        def behind(state: ChannelState) -> Sequence[Entry]:
            entries = within_bytes((mark.entry for number, mark in state.marks.items() if number > after), most_bytes)
            check_whole(self._name, entries, after, state.removed)
            return entries

        return self._run("asking for batches of", lambda connection: self._ask(connection, behind))

    def read(self, number: int) -> Batch:
        return self._run(f"reading batch {number} of", lambda connection: self._read(connection, number))

    def subscribe(self, subscriber: str, after: int = NONE) -> None:
        def is_new(state: ChannelState) -> bool:
            return subscriber not in state.subscribers.released

        self._change("subscribing to", log.SUBSCRIBE, {"subscriber": subscriber, "after": after}, is_new)

    def release(self, subscriber: str, upto: int) -> None:
        def is_news(state: ChannelState) -> bool:
            return state.subscribers.released.get(subscriber, upto) < upto

        self._change("releasing batches of", log.RELEASE, {"subscriber": subscriber, "upto": upto}, is_news)

    def unsubscribe(self, subscriber: str) -> None:
        def is_there(state: ChannelState) -> bool:
            return subscriber in state.subscribers.released

        self._change("unsubscribing from", log.UNSUBSCRIBE, {"subscriber": subscriber}, is_there)

    def released(self) -> Mapping[str, int]:
        def released(state: ChannelState) -> Mapping[str, int]:
            return dict(state.subscribers.released)

        return self._run("asking for the subscribers of", lambda connection: self._ask(connection, released))

    def _run(self, what: str, action: Callable[[Connection], Answer]) -> Answer:
        return connection_of(self._options).run(
            f"{what} channel '{self._name}'",
            self._options.patience,
            lambda connection: self._on_the_topic(connection, action),
        )

    def _on_the_topic(self, connection: Connection, action: Callable[[Connection], Answer]) -> Answer:
        try:
            return action(connection)
        except KafkaException as problem:
            if problem.args[0].code() not in UNKNOWN_TOPIC or self._still_there(connection):
                raise
            raise self._gone() from problem

    def _gone(self) -> ChannelError:
        return ChannelError(f"channel '{self._name}' was removed; open it again if it is needed")

    def _follower(self, connection: Connection) -> Follower[ChannelState]:
        return Follower.of(connection, self._topic, lambda first: ChannelState(self._name, first))

    def _ask(
        self, connection: Connection, question: Callable[[ChannelState], Answer], written: Record | None = None
    ) -> Answer:
        """The answer of the channel as it is now, with a record that was appended."""
        with self._follower(connection).caught_up(connection, written) as state:
            state.check_complete()
            if state.ended:
                raise self._gone()
            return question(state)

    def _lengthen(self, connection: Connection, keep: int) -> None:
        if self._ask(connection, lambda state: state.keep) < keep:
            self._write(connection, log.KEEP, {"keep": keep})

    def _write(self, connection: Connection, key: str, content: Mapping[str, Any]) -> Record:
        return self._follower(connection).append(connection, key, json.dumps(content).encode())

    def _publish(self, connection: Connection, batch: Batch, attempt: str) -> bool:
        """Publish a batch; also True if this attempt has published it before its answer was lost."""

        def is_there(state: ChannelState) -> bool:
            last = _last(state)
            if last is not None and batch.number <= last.number:
                return True
            check_follows(batch, last)
            return False

        def is_mine(state: ChannelState) -> bool:
            return is_there(state) and state.attempt(batch.number) == attempt

        written = None
        if not self._ask(connection, is_there):
            written = self._send(connection, batch, attempt)
        return self._ask(connection, is_mine, written)

    def _send(self, connection: Connection, batch: Batch, attempt: str) -> Record:
        size = self._chunk_size()
        chunks = [batch.payload[start : start + size] for start in range(0, len(batch.payload), size)]
        offsets = connection.append(self._topic, ROWS, [NewRecord(chunk) for chunk in chunks])
        headers = {log.ATTEMPT: attempt.encode(), log.CHUNKS: log.chunks_text(offsets).encode()}
        return self._follower(connection).append(connection, f"{log.MARK} {batch.number}", batch.head, **headers)

    def _chunk_size(self) -> int:
        most = self._options.client_settings.get(MOST_BYTES)
        return LARGEST_CHUNK if most is None else max(1, min(LARGEST_CHUNK, int(most) - ROOM_FOR_RECORD))

    def _read(self, connection: Connection, number: int) -> Batch:
        mark = self._ask(connection, lambda state: state.marks.get(number))
        if mark is None:
            raise missing(self._name, number)
        chunks: list[bytes] = []
        for offsets in mark.chunks:
            try:
                records = connection.read(self._topic, ROWS, offsets.start, offsets.stop)
            except KafkaException as problem:
                if problem.args[0].code() in GONE:
                    raise missing(self._name, number) from problem
                raise
            chunks += [record.value or b"" for record in records]
        return Batch.from_payload(b"".join(chunks), mark.head, self._name)

    def _change(
        self, what: str, key: str, content: Mapping[str, Any], is_needed: Callable[[ChannelState], bool]
    ) -> None:
        def change(connection: Connection) -> None:
            if self._ask(connection, is_needed):
                self._clean_up(connection, self._write(connection, key, content))

        self._run(what, change)

    def _clean_up(self, connection: Connection, written: Record) -> None:
        """Delete the rows of removed batches, and now and then the records of the log that a snapshot replaces."""
        unneeded, crowded = self._ask(
            connection, lambda state: (state.unneeded_rows, state.since_snapshot >= SNAPSHOT_EVERY), written
        )
        if unneeded > self._trimmed:
            topics.trim(connection, self._options, self._topic, ROWS, unneeded)
            self._trimmed = unneeded
        if crowded:
            self._write_snapshot(connection)

    def _write_snapshot(self, connection: Connection) -> None:
        follower = self._follower(connection)
        with follower.caught_up(connection) as state:
            end, snapshot = follower.position, state.snapshot(follower.position)
        written = follower.append(connection, log.SNAPSHOT, snapshot)
        if written.offset == end:
            oldest = self._ask(connection, lambda state: state.oldest_needed, written)
            topics.trim(connection, self._options, self._topic, LOG, min(oldest, end))


def _last(state: ChannelState) -> Entry | None:
    return None if state.last is None else state.last.entry
