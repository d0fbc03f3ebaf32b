"""Streams given as Arrow tables or batches, cut into the steps in which a shard takes their rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from braid.engine.arrays.jit import Words
from braid.engine.input.lifetime import event_times
from braid.engine.segment import Segment, no_rows
from braid.errors import StreamError
from braid.model.duration import Duration, lateness_of
from braid.model.stream import Stream
from braid.model.window import FOREVER, Window
from braid.runtime.arrow_layout import lay_out, plain_layout

LARGEST_SLICE = 1 << 18
"""The most rows in a step if all rows are known from the start and are taken in event-time order."""

SMALLEST_SLICE = 1 << 10
"""The fewest rows to aim at in such a step."""


class Arrival:
    """The rows of one stream in order of arrival.

    `original_schema` is their schema before they were laid out for the engine.
    """

    def __init__(self, name: str, data: Any, time: str, lateness: Duration) -> None:
        self.original_schema, batches = _read(name, data)
        schema = pa.schema([_plain_field(name, field) for field in self.original_schema])
        is_plain = schema.equals(self.original_schema)
        self._batches = batches if is_plain else (_lay_out(batch, schema) for batch in batches)
        self.stream = Stream(name, schema, time, lateness_of(name, lateness))

    def all_rows(self) -> pa.RecordBatch:
        return _one_batch(list(self._batches), self.stream.schema)

    def cut(self, rows: int) -> Iterator[Segment]:
        """Segments of this many rows, in order, each with the watermark that the rows before it lead to."""
        watermark = -FOREVER
        for batch in _rechunk(self._batches, rows, self.stream.schema):
            yield Segment(self.stream.name, batch, watermark)
            newest = pc.max(batch.column(self.stream.time))
            if newest.is_valid:
                (moment,) = event_times(pa.array([newest]))
                watermark = max(watermark, int(moment) - self.stream.lateness)

    def empty(self, watermark: int) -> Segment:
        """A segment without rows that only carries a watermark."""
        return Segment(self.stream.name, _one_batch([], self.stream.schema), watermark)


def read_table(name: str, data: Any) -> tuple[pa.Schema, pa.RecordBatch]:
    """A table: its schema as given, and its rows, laid out for the engine."""
    original_schema, batches = _read(name, data, "table")
    schema = pa.schema([_plain_field(name, field, "table") for field in original_schema])
    rows = [_lay_out(batch, schema) for batch in batches]
    return original_schema, _one_batch(rows, schema)


def steps(
    arrivals: Iterable[Arrival], batch_rows: int | None, windows: Sequence[tuple[str, Window]]
) -> Iterator[list[Segment]]:
    """The segments of each step: `batch_rows` rows of each stream, or by default all rows in event-time order.

    `windows` are the windows of the query, each with the name of its stream.
    """
    streams = list(arrivals)
    return _in_event_order(streams, windows) if batch_rows is None else _in_turn(streams, batch_rows)


def _in_turn(arrivals: list[Arrival], rows: int) -> Iterator[list[Segment]]:
    """In each step the next rows of each stream. A stream that has ended holds the others up no more."""
    segments_of = [arrival.cut(rows) for arrival in arrivals]
    while True:
        step = [next(segments, None) for segments in segments_of]
        if all(segment is None for segment in step):
            return
        yield [
            arrival.empty(FOREVER) if segment is None else segment
            for arrival, segment in zip(arrivals, step, strict=True)
        ]


def _in_event_order(arrivals: list[Arrival], windows: Sequence[tuple[str, Window]]) -> Iterator[list[Segment]]:
    """In each step a slice of event time, so that windows can drop old rows; with all rows known none is late."""
    sorted_streams = [(arrival.stream, *_sort(arrival.all_rows(), arrival.stream.time)) for arrival in arrivals]
    moments = np.sort(np.concatenate([times for _, _, times in sorted_streams])) if arrivals else np.empty(0, np.int64)
    rows = _slice_rows({stream.name: times for stream, _, times in sorted_streams}, windows)
    bounds = [-FOREVER, *np.unique(moments[rows::rows]).tolist(), FOREVER]
    for begin, end in pairwise(bounds):
        segments = []
        for stream, batch, times in sorted_streams:
            first, last = np.searchsorted(times, [begin, end])
            last = len(times) if end == FOREVER else last
            segments.append(Segment(stream.name, batch.slice(first, last - first), begin))
        yield segments


def _slice_rows(times: Mapping[str, Words], windows: Sequence[tuple[str, Window]]) -> int:
    """How many rows to take in a step: a few times as many as the windows hold.

    In larger slices, many rows would be compared that are never alive at the same time.
    """
    held = 0.0
    for name, window in windows:
        moments = times[name]
        if window.row_limit is not None:
            held += window.row_limit
        elif len(moments):
            duration = max(1.0, float(moments[-1]) - float(moments[0]))
            lifetime = FOREVER if window.lifetime is None else window.lifetime
            held += len(moments) * min(1.0, lifetime / duration)
    return int(min(max(4 * held, SMALLEST_SLICE), LARGEST_SLICE))


def _sort(rows: pa.RecordBatch, time: str) -> tuple[pa.RecordBatch, np.ndarray[Any, np.dtype[np.int64]]]:
    """Rows in event-time order, and their event times; rows without a time come first."""
    column = rows.column(time)
    times = np.full(len(column), -FOREVER)
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    times[valid] = event_times(column.drop_null())
    if not (np.diff(times) >= 0).all():
        order = np.argsort(times, kind="stable")
        rows, times = rows.take(pa.array(order)), times[order]
    return rows, times


def _read(name: str, data: Any, what: str = "stream") -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The schema of a stream and its batches, from anything that holds Arrow data."""
    if isinstance(data, pa.RecordBatch):
        data = [data]
    if hasattr(data, "__arrow_c_stream__"):
        table = pa.table(data)
        return table.schema, iter(table.to_batches())
    if isinstance(data, Mapping | str | bytes) or not isinstance(data, Iterable):
        raise StreamError(
            f"{what} '{name}' is {type(data).__name__}; give an Arrow table, or an iterable of Arrow record batches"
        )
    batches = iter(data)
    first = next(batches, None)
    if first is None:
        raise StreamError(f"{what} '{name}' has no batch, so its columns are unknown; give an empty Arrow table")
    schema = _checked(name, first, None).schema
    return schema, (_checked(name, batch, schema) for batch in chain([first], batches))


def _plain_field(name: str, field: pa.Field, what: str = "stream") -> pa.Field:
    try:
        return field.with_type(plain_layout(field.type))
    except StreamError as problem:
        raise StreamError(f"column '{field.name}' of {what} '{name}' is {field.type}; {problem}") from None


def _lay_out(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [lay_out(column, field.type) for column, field in zip(rows.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _checked(name: str, batch: Any, schema: pa.Schema | None) -> pa.RecordBatch:
    """The batch, if it is a record batch with this schema; else a `StreamError`."""
    if not isinstance(batch, pa.RecordBatch):
        raise StreamError(f"stream '{name}' gives {type(batch).__name__}; give Arrow record batches")
    if schema is not None and not batch.schema.equals(schema):
        raise StreamError(f"stream '{name}' changes its columns from\n{schema}\nto\n{batch.schema}")
    return batch


def _rechunk(batches: Iterator[pa.RecordBatch], rows: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of exactly `rows` rows; the last one may be shorter."""
    pending: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        pending.append(batch)
        count += batch.num_rows
        if count >= rows:
            joined = _one_batch(pending, schema)
            whole = count - count % rows
            yield from (joined.slice(first, rows) for first in range(0, whole, rows))
            pending = [joined.slice(whole)]
            count -= whole
    if count:
        yield _one_batch(pending, schema)


def _one_batch(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    return pa.concat_batches(batches) if batches else no_rows(schema)
