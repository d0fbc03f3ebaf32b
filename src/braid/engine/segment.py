"""Segments: batches of rows that enter the engine, make up its durable state, and are sent between sites."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass, field

import pyarrow as pa

from braid.errors import StreamError
from braid.model.window import FOREVER

MAGIC = b"BRD1"
"""The first bytes of every encoded segment."""

PREFIX = len(MAGIC) + 8
"""Bytes before the header: the magic, a checksum of everything after it, and the length of the header."""

COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
"""Compression halves the size, which costs less time than storing the other half would.

Every core has a shard of its own, so threads save nothing, and for a segment of few rows they cost six times its work.
"""

READ = pa.ipc.IpcReadOptions(use_threads=False)


def no_rows(schema: pa.Schema) -> pa.RecordBatch:
    """An empty batch."""
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


@dataclass(frozen=True, slots=True)
class Segment:
    """An immutable batch of rows of one stream, with the stream's progress before it.

    `watermark` is an event time in microseconds: rows of this or any later segment that are older than it are late. A
    segment without rows only carries a watermark. `newest` is the newest event time of the whole batch that the segment
    was cut from, so that every shard knows how far the batch has come. `untimed` is the number of rows that were left
    out before because they have no event time; they still count as received. `copied` is how many rows of all shards
    are copies of rows whose key is spread; only one shard is told. `branch` says which of the streams that the stream
    unites the rows came from.
    """

    stream: str
    rows: pa.RecordBatch
    watermark: int = -FOREVER
    newest: int = -FOREVER
    untimed: int = 0
    copied: int = 0
    branch: int = 0
    _encoded: bytes | None = field(default=None, init=False, repr=False, compare=False)
    """The bytes that `from_bytes` read. A changed copy (`dataclasses.replace`) does not have them."""

    def to_bytes(self) -> bytes:
        """The segment as bytes: the magic, a checksum, a header in JSON, and the rows in Arrow IPC."""
        if self._encoded is not None:
            return self._encoded
        fields = {"stream": self.stream, "watermark": self.watermark, "newest": self.newest, "untimed": self.untimed}
        if self.copied:
            fields["copied"] = self.copied
        if self.branch:
            fields["branch"] = self.branch
        header = json.dumps(fields).encode()
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.rows.schema, options=COMPRESSED) as writer:
            writer.write_batch(self.rows)
        body = len(header).to_bytes(4, "little") + header + sink.getvalue().to_pybytes()
        checksum: bytes = zlib.crc32(body).to_bytes(4, "little")
        return b"".join([MAGIC, checksum, body])

    @classmethod
    def from_bytes(cls, data: bytes) -> Segment:
        """The segment that `to_bytes` wrote; rows are not copied. Damaged or foreign bytes raise a `StreamError`."""
        if data[: len(MAGIC)] != MAGIC:
            raise StreamError(f"{len(data)} bytes that should be a segment begin with {data[:4]!r}, not {MAGIC!r}")
        checksum = int.from_bytes(data[len(MAGIC) : len(MAGIC) + 4], "little")
        if zlib.crc32(memoryview(data)[len(MAGIC) + 4 :]) != checksum:
            raise StreamError(f"a segment of {len(data)} bytes is damaged: its checksum does not match its content")
        end = PREFIX + int.from_bytes(data[PREFIX - 4 : PREFIX], "little")
        header = json.loads(data[PREFIX:end])
        with pa.ipc.open_stream(pa.py_buffer(data).slice(end), options=READ) as reader:
            rows = reader.read_next_batch()
        counts = header.get("untimed", 0), header.get("copied", 0), header.get("branch", 0)
        segment = cls(header["stream"], rows, header["watermark"], header["newest"], *counts)
        object.__setattr__(segment, "_encoded", data)
        return segment
