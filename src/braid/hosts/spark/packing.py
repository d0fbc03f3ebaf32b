"""Before the shuffle: rows of a stream to segments, one for each bucket."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from braid.engine.hashing import key_words
from braid.engine.lifetime import event_times
from braid.engine.routing import routing_classes
from braid.engine.screen import Screen
from braid.engine.segment import Segment
from braid.hosts.spark.job import Job
from braid.hosts.spark.worker import lighten
from braid.model.query import Source
from braid.model.window import FOREVER, Rows

PACKED = pa.schema(
    {"bucket": pa.int32(), "source": pa.int32(), "payload": pa.binary(), "reached": pa.timestamp("us", "UTC")}
)
PACKED_DDL = "bucket int, source int, payload binary, reached timestamp"
"""`reached` is how far the stream has come, for Spark's watermark: one time for a segment, not for each row."""

MOST_BYTES = 256 << 20
"""A task packs what it has read whenever it comes to so much."""


class Packer:
    """Packs rows of one stream for every source of the query that reads it.

    Spark ships it to the workers as text (a job) and a name; its parts are built there.
    """

    def __init__(self, job: str, stream: str) -> None:
        self._job = job
        self._stream = stream

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        job = Job.from_json(self._job)
        sources = [
            (number, SourcePacker(job, source))
            for number, source in enumerate(job.narrow.inputs)
            if job.query.inputs[number].declared.name == self._stream
        ]
        names = job.columns_read(self._stream)
        for rows in _gather(batches):
            rows = rows.rename_columns(names)
            for number, packer in sources:
                for bucket, segment in packer.pack(rows):
                    # One by one: together, copies for all buckets may be more than an Arrow array holds.
                    packed = {
                        "bucket": job.labels[bucket],
                        "source": number,
                        "payload": segment.to_bytes(),
                        "reached": segment.newest if segment.newest > -FOREVER else None,
                    }
                    yield pa.RecordBatch.from_pylist([packed], PACKED)
        lighten()


class SourcePacker:
    """Packs rows for one source: rows that cannot be part of a result go no further, unless they must be counted."""

    def __init__(self, job: Job, source: Source) -> None:
        narrow, alias = job.narrow, source.alias
        routing = {number: owned for number, owned in enumerate(routing_classes(narrow)) if alias in owned.sources}
        # What excludes nothing goes no further; what is only compared by a null stays a result.
        excluding = [exclusion.predicates for exclusion in narrow.exclusions if exclusion.source.alias == alias]
        selections = (
            [predicate for predicate in excluding[0] if predicate.sources == {alias}]
            if excluding
            else narrow.graph.selections_of(alias)
        )
        self._needed = routing.keys() if excluding else narrow.graph.classes_of(alias).keys()
        self._alias = alias
        self._router = job.router
        self._stream = source.declared
        self._counted = isinstance(source.window, Rows)
        self._screen = Screen(source, selections, routing)

    def pack(self, rows: pa.RecordBatch) -> Iterator[tuple[int, Segment]]:
        """A segment for every bucket; those without rows still tell how far the stream has come."""
        rows = _conform(rows, self._stream.schema)
        times = rows.column(self._stream.time)
        newest, untimed = _newest(times), times.null_count
        rows = rows.filter(pc.is_valid(times))
        values = self._screen.values(rows)
        if not self._counted:
            needed = {number: values[number] for number in self._needed}
            kept = self._screen.passing(rows, needed, np.full(rows.num_rows, True))
            if len(kept) < rows.num_rows:
                rows = rows.take(pa.array(kept))
                values = {number: value.take(pa.array(kept)) for number, value in values.items()}
        words = {number: key_words(value) for number, value in values.items()}
        times = event_times(rows.column(self._stream.time))
        for bucket, places in self._router.route(self._alias, words, times):
            own = rows if len(places) == rows.num_rows else rows.take(pa.array(places))
            # Rows without a time belong to no bucket; the first one counts them.
            yield bucket, Segment(self._alias, own, newest=newest, untimed=0 if bucket else untimed)


def _gather(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Few large batches instead of many small ones."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += batch.nbytes
        if size > MOST_BYTES:
            yield pa.concat_batches(held)
            held, size = [], 0
    if held:
        yield pa.concat_batches(held)


def _conform(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The columns that are read, in the types the query was checked with."""
    columns = [rows.column(field.name).cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _newest(times: pa.Array) -> int:
    newest = pc.max(times)
    return int(event_times(pa.array([newest]))[0]) if newest.is_valid else -FOREVER
