"""Small batches for tests of channels."""

from __future__ import annotations

import pyarrow as pa

from braid.channels.batch import NONE, Batch
from braid.channels.channel import Channel
from braid.engine.segment import Segment
from braid.errors import ChannelError

NAME = "flights ⋈ bags / 1"
"""The name of a channel, with characters that file systems and servers do not take as they are."""


def batch(number: int, previous: int, rows: int = 3, watermark: int = 0, newest: int = 0, channel: str = NAME) -> Batch:
    """A batch with one segment of `rows` rows, or none."""
    segment = Segment("f", pa.record_batch({"n": pa.array(range(rows), pa.int64())}), newest=number)
    return Batch(channel, number, previous, (segment,) if rows else (), watermark, newest)


def last_number(channel: Channel) -> int:
    """The number of the last batch of a channel; `NONE` if it has none."""
    last = channel.last()
    return NONE if last is None else last.number


def fill(channel: Channel, *numbers: int) -> None:
    """Publish batches whose rows start at ten times their number, and whose watermark is that too."""
    previous = last_number(channel)
    for number in numbers:
        assert channel.publish(batch(number, previous, 3, 10 * number, 10 * number, channel.name))
        previous = number


def publish_until_refused(channel: Channel, rows: int) -> tuple[int, str]:
    """Publish batches until the channel has no more room; returns how many it took, and the error."""
    published = 0
    while True:
        try:
            channel.publish(batch(published, published - 1, rows))
        except ChannelError as error:
            return published, str(error)
        published += 1


def numbers_behind(channel: Channel, after: int) -> list[int]:
    """The numbers of the batches behind a batch."""
    return [entry.number for entry in channel.entries(after)]
