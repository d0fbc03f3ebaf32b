"""The protocol of channels, and what every kind of channel shares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from braid.channels.batch import NONE, Batch
from braid.channels.batch import Entry as Entry
from braid.errors import ChannelError
from braid.model.window import FOREVER


class Channel(Protocol):
    """A durable log of batches with one publisher and any number of subscribers.

    A batch is there whole or not at all. Publishing a batch again changes nothing: what was there first counts. A
    subscriber keeps the number of the last batch it has taken in its own checkpoint, and says now and then which it
    will not ask for again. A batch is removed when every subscriber has released it and the channel need not keep it
    for newcomers: it is opened with how long, in event time, and the longest of these counts.
    """

    @property
    def name(self) -> str: ...

    def publish(self, batch: Batch) -> bool:
        """Add a batch; False if one of this number is there already. `ChannelError` if it does not follow the last."""
        ...

    def last(self) -> Entry | None:
        """The newest batch that was ever published, also if it has been removed; None if there was none."""
        ...

    def entries(self, after: int, most_bytes: int | None = None) -> Sequence[Entry]:
        """What is behind a number, oldest first: at least one if there is any, then as long as bytes allow.

        Behind NONE that begins with the oldest batch that is kept. Behind another number `ChannelError` if the batch
        that follows it was removed. Reads no rows.
        """
        ...

    def read(self, number: int) -> Batch:
        """A batch, verified; `ChannelError` if it is not there or damaged."""
        ...

    def subscribe(self, subscriber: str, after: int = NONE) -> None:
        """Keep every batch behind a number until the subscriber releases it; who subscribes already stays there."""
        ...

    def release(self, subscriber: str, upto: int) -> None:
        """The subscriber will not ask for batches up to this number again. Who does not subscribe changes nothing."""
        ...

    def unsubscribe(self, subscriber: str) -> None:
        """The subscriber will not come back: nothing is kept for it any more."""
        ...

    def released(self) -> Mapping[str, int]:
        """The last batch that each subscriber has released; subscribers may have a plain form of their names here."""
        ...


@dataclass(frozen=True, slots=True)
class Lag:
    """Batches that wait for a subscriber, their rows and their bytes."""

    batches: int
    bytes: int
    rows: int


def lag(channel: Channel, after: int) -> Lag:
    """What a subscriber that has taken the batches up to a number has not taken yet."""
    waiting = channel.entries(after)
    return Lag(len(waiting), sum(entry.bytes for entry in waiting), sum(entry.rows for entry in waiting))


def newest_published(channel: Channel) -> int:
    """An event time that no row that was ever on the channel started after.

    Batches that were removed are older than the watermark.
    """
    last = channel.last()
    if last is None:
        return -FOREVER
    return max(last.watermark, *(entry.newest for entry in channel.entries(NONE)), -FOREVER)


def read_behind(channel: Channel, after: int, most_bytes: int | None = None) -> list[Batch]:
    """The batches behind a number, oldest first: at least one if there is any, then as long as bytes allow."""
    return [channel.read(entry.number) for entry in channel.entries(after, most_bytes)]


def is_whole(channel: Channel) -> bool:
    """Whether no batch of a channel was removed."""
    oldest = channel.entries(NONE, most_bytes=1)
    return channel.last() is None or (bool(oldest) and oldest[0].previous == NONE)


def holds(channel: Channel, keep: int, since: int) -> bool:
    """Whether a channel that keeps so much event time has every batch with rows that start at or after `since`."""
    last = channel.last()
    return last is None or is_whole(channel) or since > last.watermark - keep


def complete_from(channels: Iterable[Channel]) -> int:
    """The event time from which on channels have all rows that are alive, if each keeps as much as its window holds."""
    channels = list(channels)
    if all(map(is_whole, channels)):
        return -FOREVER
    return max(last.watermark for channel in channels if (last := channel.last()) is not None)


def check_follows(batch: Batch, last: Entry | None) -> None:
    """Refuse a batch that does not follow the newest one: its publisher has lost its place, or there are two."""
    newest = NONE if last is None else last.number
    if batch.previous != newest:
        raise ChannelError(
            f"batch {batch.number} of channel '{batch.channel}' follows batch {batch.previous}, but the newest one "
            f"there is {newest}: another site publishes on this channel, or this one went back to an older checkpoint; "
            "let one site publish, from its last checkpoint"
        )


def check_whole(channel: str, entries: Sequence[Entry], after: int, removed: int) -> None:
    """Refuse a log from which a batch is missing. `removed` is the newest batch that was removed on purpose."""
    reached = removed if after == NONE else after
    for entry in entries:
        if entry.previous != reached:
            raise ChannelError(
                f"channel '{channel}' has no batch {entry.previous}, which its batch {entry.number} follows; "
                f"the last one before is {reached}: it was removed too early or lost; restore it, or start anew"
            )
        reached = entry.number


def missing(channel: str, number: int) -> ChannelError:
    return ChannelError(
        f"channel '{channel}' has no batch {number}: it was removed or lost; read what `entries` tells, or restore it"
    )
