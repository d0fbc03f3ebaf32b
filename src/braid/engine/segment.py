"""Segments: what flows into the engine, is kept as its durable state, and crosses the wire."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass, field

import pyarrow as pa

from braid.errors import StreamError
from braid.model.window import FOREVER

MAGIC = b"BRD1"
PREFIX = len(MAGIC) + 8
"""Before the header: the magic, a checksum of all that follows it, and the length of the header."""

COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")
"""Bytes are what a state store charges for; this halves them in less time than it takes to store the other half."""


def no_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


@dataclass(frozen=True, slots=True)
class Segment:
    """An immutable batch of rows of one stream, with what was known of the stream's progress before it.

    `watermark` is an event time in microseconds: rows of this or any later segment that are older than it are late.
    A segment without rows carries a watermark alone. `newest` is the newest event time among the rows that the
    segment was cut from, so that everybody who gets a part of a batch knows how far the whole has come. `untimed` is
    how many rows have been left out on the way because they have no event time; they are counted with the others.
    """

    stream: str
    rows: pa.RecordBatch
    watermark: int = -FOREVER
    newest: int = -FOREVER
    untimed: int = 0
    _encoded: bytes | None = field(default=None, init=False, repr=False, compare=False)
    """What `from_bytes` read. A changed copy (`dataclasses.replace`) does not have it."""

    def to_bytes(self) -> bytes:
        """Header as JSON, rows as Arrow IPC, and a checksum over both."""
        if self._encoded is not None:
            return self._encoded
        told = {"stream": self.stream, "watermark": self.watermark, "newest": self.newest, "untimed": self.untimed}
        header = json.dumps(told).encode()
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.rows.schema, options=COMPRESSED) as writer:
            writer.write_batch(self.rows)
        body = len(header).to_bytes(4, "little") + header + sink.getvalue().to_pybytes()
        checksum: bytes = zlib.crc32(body).to_bytes(4, "little")
        return b"".join([MAGIC, checksum, body])

    @classmethod
    def from_bytes(cls, data: bytes) -> Segment:
        """The segment that was written; rows are not copied. Anything else is a `StreamError`."""
        if data[: len(MAGIC)] != MAGIC:
            raise StreamError(f"{len(data)} bytes that should be a segment begin with {data[:4]!r}, not {MAGIC!r}")
        if zlib.crc32(memoryview(data)[len(MAGIC) + 4 :]) != int.from_bytes(
            data[len(MAGIC) : len(MAGIC) + 4], "little"
        ):
            raise StreamError(f"a segment of {len(data)} bytes is damaged: its checksum does not fit its content")
        end = PREFIX + int.from_bytes(data[PREFIX - 4 : PREFIX], "little")
        header = json.loads(data[PREFIX:end])
        with pa.ipc.open_stream(pa.py_buffer(data).slice(end)) as reader:
            rows = reader.read_next_batch()
        segment = cls(header["stream"], rows, header["watermark"], header["newest"], header.get("untimed", 0))
        object.__setattr__(segment, "_encoded", data)
        return segment
