"""The protocol of channels, and what every kind of channel shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from braid.channels.batch import NONE, Batch
from braid.errors import ChannelError


class Channel(Protocol):
    """A durable log of batches with one publisher and any number of subscribers.

    A batch is there whole or not at all. Publishing a batch again changes nothing: what was there first counts. A
    subscriber keeps the number of the last batch it has taken in its own checkpoint, and says now and then which it
    will not ask for again.
    """

    @property
    def name(self) -> str: ...

    def publish(self, batch: Batch) -> bool:
        """Add a batch; False if one of this number is there already. `ChannelError` if it does not follow the last."""
        ...

    def last(self) -> int:
        """The number of the newest batch; NONE if there is none."""
        ...

    def read(self, after: int, most_bytes: int | None = None) -> Sequence[Batch]:
        """The batches behind a number, oldest first: at least one if there is any, then as long as bytes allow."""
        ...

    def lag(self, after: int) -> Lag:
        """What a subscriber that has taken the batches up to a number has not taken yet."""
        ...

    def subscribe(self, subscriber: str, after: int = NONE) -> None:
        """Keep every batch behind a number until the subscriber releases it."""
        ...

    def release(self, subscriber: str, upto: int) -> None:
        """The subscriber will not ask for batches up to this number again; what no subscriber needs is removed."""
        ...


@dataclass(frozen=True, slots=True)
class Lag:
    """Batches that wait for a subscriber, and their bytes."""

    batches: int
    bytes: int


def check_follows(batch: Batch, last: int) -> None:
    """Refuse a batch that does not follow the newest one: its publisher has lost its place, or there are two."""
    if batch.previous != last:
        raise ChannelError(
            f"batch {batch.number} of channel '{batch.channel}' follows batch {batch.previous}, but the newest one "
            f"there is {last}: another site publishes on this channel, or this one went back to an older checkpoint; "
            "let one site publish, from its last checkpoint"
        )


def check_whole(batches: Sequence[Batch], after: int) -> None:
    """Refuse a log from which a batch is missing."""
    for batch in batches:
        if batch.previous != after:
            raise ChannelError(
                f"channel '{batch.channel}' has no batch {batch.previous}, which its batch {batch.number} follows; "
                f"the last one taken is {after}: it was removed too early or lost; restore it, or start anew"
            )
        after = batch.number
