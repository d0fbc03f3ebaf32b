"""The bytes of batches on a channel besides their rows: a header, and an Arrow schema.

If a stream brings few rows in a batch, these are most of its bytes. So it costs bytes to divide a stream into parts:
each part has a channel of its own, with as many batches as the whole stream has.
"""

from __future__ import annotations

from dataclasses import dataclass

from braid.model.needed_columns import columns_needed_outside
from braid.model.query import Query

BYTES_OF_A_BATCH, BYTES_OF_A_COLUMN = 500, 140
"""The bytes of a batch besides its rows: of its header, and of the schema of each column."""

FEWEST_ROWS = 1e-12
"""Fewer rows per second than this, one in 30,000 years, are none; the header of a row would have no finite size."""

BYTES_WITHOUT_ROWS = 200
"""The bytes of a batch without rows, which only tells the watermark."""


def bytes_of_header(query: Query, streams: frozenset[str]) -> float:
    """The bytes of a batch of a join besides its rows. Each stream has one more column, for its event time."""
    columns = len(set(columns_needed_outside(query, streams))) + len(streams)
    return BYTES_OF_A_BATCH + BYTES_OF_A_COLUMN * columns


def batches_per_row(batches: float, rows: float) -> float:
    """The share of a batch that a row is; each batch with rows has at least one."""
    return min(1.0, batches / rows) if rows else 1.0


@dataclass(frozen=True)
class Headers:
    """The headers of the inputs of a partitioned join, and of their joins.

    `inputs` are the streams of each input, `batches` the batches per second of each stream of the query.
    """

    query: Query
    inputs: tuple[frozenset[str], ...]
    batches: dict[str, float]

    def per_row(self, mask: int, rows: float) -> float:
        """The bytes of headers for each row of the join of some inputs, if it has this many rows per second.

        A batch of any of its streams makes a batch of the join.
        """
        if rows < FEWEST_ROWS:
            return 0.0
        joined = [streams for position, streams in enumerate(self.inputs) if mask >> position & 1]
        streams = frozenset[str]().union(*joined)
        batches = sum(self.batches[stream] for stream in streams)
        without_rows = max(0.0, batches - rows)
        header = bytes_of_header(self.query, streams)
        return header * batches_per_row(batches, rows) + BYTES_WITHOUT_ROWS * without_rows / rows
