"""Small batches for the tests of channels."""

import pyarrow as pa

from braid.channels.batch import NONE, Batch
from braid.channels.channel import Channel
from braid.engine.segment import Segment

NAME = "flights ⋈ bags / 1"


def batch(number: int, previous: int, rows: int = 3, watermark: int = 0, newest: int = 0, channel: str = NAME) -> Batch:
    segment = Segment("f", pa.record_batch({"n": pa.array(range(rows), pa.int64())}), newest=number)
    return Batch(channel, number, previous, (segment,) if rows else (), watermark, newest)


def last_number(channel: Channel) -> int:
    last = channel.last()
    return NONE if last is None else last.number


def fill(channel: Channel, *numbers: int) -> None:
    """Publish batches whose rows start at ten times their number, and whose watermark is that too."""
    previous = last_number(channel)
    for number in numbers:
        assert channel.publish(batch(number, previous, 3, 10 * number, 10 * number, channel.name))
        previous = number


def numbers_behind(channel: Channel, after: int) -> list[int]:
    return [entry.number for entry in channel.entries(after)]
