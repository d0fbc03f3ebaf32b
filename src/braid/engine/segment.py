"""Segments: what flows into and out of the engine."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from braid.model.window import FOREVER


@dataclass(frozen=True, slots=True)
class Segment:
    """An immutable batch of rows of one stream, with what was known of the stream's progress before it.

    `watermark` is an event time in microseconds: rows of this or any later segment that are older than it are late.
    A segment without rows carries a watermark alone.
    """

    stream: str
    rows: pa.RecordBatch
    watermark: int = -FOREVER
