"""A batch: what a site publishes on a channel at once, and how it is written.

A batch has the number of the step that made it. Steps without news publish nothing, so numbers have gaps; each batch
names the one before it, so that a reader notices if one is missing. It is written as a head, which tells everything
but the rows and has a checksum of its own, and the payload, which is the segments one behind the other.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import BinaryIO, NamedTuple

from braid.engine.segment import Segment
from braid.errors import ChannelError, StreamError
from braid.model.window import FOREVER

MAGIC = b"BRC1"
PREFIX = len(MAGIC) + 8
"""Before the header: the magic, a checksum of the header, and its length."""

NONE = -1
"""The number before the first batch."""


class Carried(NamedTuple):
    """What a channel has carried in all, also of batches that have been removed."""

    batches: int = 0
    rows: int = 0
    bytes: int = 0


NOTHING = Carried()


@dataclass(frozen=True, slots=True)
class Entry:
    """What a channel knows of a batch without reading its rows. `before` are the totals of the channel before it."""

    number: int
    previous: int
    watermark: int
    newest: int
    rows: int
    bytes: int
    before: Carried = NOTHING

    @property
    def carried(self) -> Carried:
        """What the channel has carried, this batch included."""
        before = self.before
        return Carried(before.batches + 1, before.rows + self.rows, before.bytes + self.bytes)


@dataclass(frozen=True, slots=True)
class Head:
    """The beginning of a batch: its entry, and what it takes to read and to check the payload behind it."""

    entry: Entry
    length: int
    sizes: tuple[int, ...]
    checksum: int

    @classmethod
    def from_bytes(cls, data: bytes, channel: str, number: int) -> Head:
        """The head of the batch that a channel has under a number; `ChannelError` if it is anything else."""
        wrong = f"batch {number} of channel '{channel}'"
        if data[: len(MAGIC)] != MAGIC:
            raise ChannelError(f"{wrong} is no batch: it begins with {data[:4]!r}, not {MAGIC!r}; restore it")
        length = _head_length(data)
        text = data[PREFIX:length]
        if zlib.crc32(text) != _integer(data, len(MAGIC)):
            raise ChannelError(f"{wrong} is damaged: the checksum of its header does not match; restore it")
        header = json.loads(text)
        if (header["channel"], header["number"]) != (channel, number):
            raise ChannelError(
                f"{wrong} says that it is batch {header['number']} of channel '{header['channel']}'; "
                "something has moved it: restore the channel"
            )
        sizes = tuple(header["sizes"])
        size = length + sum(sizes)
        before = Carried(*header["before"])
        entry = Entry(number, header["previous"], header["watermark"], header["newest"], header["rows"], size, before)
        return cls(entry, length, sizes, header["checksum"])


def read_head(file: BinaryIO) -> bytes:
    """The bytes of a head from a file that begins with one."""
    prefix = file.read(PREFIX)
    return prefix + file.read(_head_length(prefix) - PREFIX)


@dataclass(frozen=True)
class Batch:
    """Segments of one stream, and its watermark after them. `newest` is the newest start of its rows in event time."""

    channel: str
    number: int
    previous: int
    segments: tuple[Segment, ...]
    watermark: int = -FOREVER
    newest: int = -FOREVER
    before: Carried = NOTHING

    @classmethod
    def behind(
        cls,
        last: Entry | None,
        channel: str,
        number: int,
        segments: tuple[Segment, ...],
        watermark: int,
    ) -> Batch:
        """The batch that follows the newest one of a channel, or begins it."""
        previous, before = (NONE, NOTHING) if last is None else (last.number, last.carried)
        newest = max((segment.newest for segment in segments), default=-FOREVER)
        return cls(channel, number, previous, segments, watermark, newest, before)

    @property
    def rows(self) -> int:
        return sum(segment.rows.num_rows for segment in self.segments)

    @property
    def entry(self) -> Entry:
        size = len(self.head) + len(self.payload)
        return Entry(self.number, self.previous, self.watermark, self.newest, self.rows, size, self.before)

    @cached_property
    def payload(self) -> bytes:
        return b"".join(segment.to_bytes() for segment in self.segments)

    @cached_property
    def head(self) -> bytes:
        header = json.dumps(
            {
                "channel": self.channel,
                "number": self.number,
                "previous": self.previous,
                "watermark": self.watermark,
                "newest": self.newest,
                "rows": self.rows,
                "before": self.before,
                "sizes": [len(segment.to_bytes()) for segment in self.segments],
                "checksum": zlib.crc32(self.payload),
            }
        ).encode()
        return b"".join([MAGIC, zlib.crc32(header).to_bytes(4, "little"), len(header).to_bytes(4, "little"), header])

    @property
    def data(self) -> bytes:
        return self.head + self.payload

    @classmethod
    def from_bytes(cls, data: bytes, channel: str, number: int) -> Batch:
        """The batch that a channel has under a number; `ChannelError` if it is anything else."""
        head = Head.from_bytes(data, channel, number)
        return cls.from_payload(data[head.length :], head, channel)

    @classmethod
    def from_payload(cls, payload: bytes, head: Head, channel: str) -> Batch:
        entry = head.entry
        wrong = f"batch {entry.number} of channel '{channel}'"
        if len(payload) != sum(head.sizes) or zlib.crc32(payload) != head.checksum:
            raise ChannelError(
                f"{wrong} is damaged: its {len(payload)} bytes of rows do not match the checksum of "
                f"{sum(head.sizes)} bytes that were published; restore it"
            )
        segments = []
        start = 0
        for size in head.sizes:
            try:
                segments.append(Segment.from_bytes(payload[start : start + size]))
            except StreamError as problem:
                raise ChannelError(f"{wrong} is damaged: {problem}") from problem
            start += size
        return cls(channel, entry.number, entry.previous, tuple(segments), entry.watermark, entry.newest, entry.before)


def _head_length(data: bytes) -> int:
    return PREFIX + _integer(data, PREFIX - 4)


def _integer(data: bytes, start: int) -> int:
    return int.from_bytes(data[start : start + 4], "little")
