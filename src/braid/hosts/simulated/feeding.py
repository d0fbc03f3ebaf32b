"""Streams batch by batch, as they come where they start."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import itemgetter

import pyarrow as pa
import pyarrow.compute as pc

from braid.engine.input.lifetime import event_times
from braid.model.query import Query
from braid.model.window import FOREVER

BATCHES = 50
"""How many batches each stream comes in, unless the caller says how many rows a batch has."""

SourceBatches = dict[str, tuple[pa.RecordBatch, int]]
"""The next batch of each stream, with its newest event time."""


def batches_of(query: Query, rows: Mapping[str, pa.RecordBatch], batch_rows: int | None) -> Iterator[SourceBatches]:
    """The streams batch by batch, each with its newest event time."""
    times = {source.declared.name: source.declared.time for source in query.inputs}
    sizes = {name: batch_rows or max(1, -(-whole.num_rows // BATCHES)) for name, whole in rows.items()}
    steps = max((-(-whole.num_rows // sizes[name]) for name, whole in rows.items()), default=0)
    for step in range(steps):
        batch = {}
        for name, whole in rows.items():
            part = whole.slice(step * sizes[name], sizes[name])
            newest = pc.max(part.column(times[name]))
            moment = int(event_times(pa.array([newest]))[0]) if newest.is_valid else -FOREVER
            batch[name] = (part, moment)
        yield batch


def arrivals_of(query: Query, rows: Mapping[str, pa.RecordBatch], batch_rows: int | None) -> Iterator[SourceBatches]:
    """The batches of all streams in the order in which they come: each when its newest row does.

    Batches of as many rows come more often if their stream is fast.
    """
    reached: dict[str, int] = {}
    arriving: list[tuple[int, SourceBatches]] = []
    for batch in batches_of(query, rows, batch_rows):
        for name, (part, newest) in batch.items():
            reached[name] = max(reached.get(name, -FOREVER), newest)
            if part.num_rows:
                arriving.append((reached[name], {name: (part, newest)}))
    for _, arrived in sorted(arriving, key=itemgetter(0)):
        yield arrived


def moments(query: Query, rows: Mapping[str, pa.RecordBatch]) -> list[int]:
    """The first and the last event time of each stream that has rows."""
    ends = []
    for declared in (source.declared for source in query.sources):
        column = rows[declared.name].column(declared.time).drop_null()
        if len(column):
            times = event_times(column)
            ends += [int(times.min()), int(times.max())]
    return ends
