"""A batch: what a site publishes on a channel at once, and how it is written.

A batch has the number of the step that made it. Steps without news publish nothing, so numbers have gaps; each batch
names the one before it, so that a reader notices if one is missing.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from functools import cached_property

from braid.engine.segment import Segment
from braid.errors import ChannelError, StreamError
from braid.model.window import FOREVER

MAGIC = b"BRC1"
PREFIX = len(MAGIC) + 8
"""Before the header: the magic, a checksum of all that follows it, and the length of the header."""

NONE = -1
"""The number before the first batch."""


@dataclass(frozen=True)
class Batch:
    """Segments of one stream, and its watermark after them."""

    channel: str
    number: int
    previous: int
    segments: tuple[Segment, ...]
    watermark: int = -FOREVER

    @property
    def rows(self) -> int:
        return sum(segment.rows.num_rows for segment in self.segments)

    @cached_property
    def data(self) -> bytes:
        """Header as JSON, the segments one behind the other, and a checksum of all of it."""
        payloads = [segment.to_bytes() for segment in self.segments]
        header = json.dumps(
            {
                "channel": self.channel,
                "number": self.number,
                "previous": self.previous,
                "watermark": self.watermark,
                "sizes": [len(payload) for payload in payloads],
            }
        ).encode()
        body = b"".join([len(header).to_bytes(4, "little"), header, *payloads])
        return b"".join([MAGIC, zlib.crc32(body).to_bytes(4, "little"), body])

    @classmethod
    def from_bytes(cls, data: bytes, channel: str, number: int) -> Batch:
        """The batch of a channel that was written under a number; `ChannelError` if it is anything else."""
        wrong = f"batch {number} of channel '{channel}'"
        if data[: len(MAGIC)] != MAGIC:
            raise ChannelError(f"{wrong} is no batch: it begins with {data[:4]!r}, not {MAGIC!r}; restore it")
        checksum = int.from_bytes(data[len(MAGIC) : len(MAGIC) + 4], "little")
        if zlib.crc32(memoryview(data)[len(MAGIC) + 4 :]) != checksum:
            raise ChannelError(f"{wrong} is damaged: its checksum does not match its {len(data)} bytes; restore it")
        end = PREFIX + int.from_bytes(data[PREFIX - 4 : PREFIX], "little")
        header = json.loads(data[PREFIX:end])
        if (header["channel"], header["number"]) != (channel, number):
            raise ChannelError(
                f"{wrong} says that it is batch {header['number']} of channel '{header['channel']}'; "
                "something has moved it: restore the channel"
            )
        segments = []
        for size in header["sizes"]:
            try:
                segments.append(Segment.from_bytes(data[end : end + size]))
            except StreamError as problem:
                raise ChannelError(f"{wrong} is damaged: {problem}") from problem
            end += size
        batch = cls(channel, number, header["previous"], tuple(segments), header["watermark"])
        batch.__dict__["data"] = data
        return batch
