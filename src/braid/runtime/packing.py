"""Before the shuffle: rows of a stream to segments, one for each shard."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from braid.engine.input.lifetime import event_times
from braid.engine.input.screen import Screen
from braid.engine.keys.hashing import key_words
from braid.engine.segment import Segment
from braid.model.query import Source
from braid.model.window import FOREVER
from braid.runtime.query_spec import QuerySpec
from braid.runtime.routing import routing_classes


class SourcePacker:
    """Packs rows for one source: rows that cannot be part of a result go no further, unless they must be counted."""

    def __init__(self, spec: QuerySpec, source: Source) -> None:
        narrow, alias = spec.narrow, source.alias
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
        self._router = spec.router
        self._stream = source.declared
        self._counted = source.window.counts_rows
        self._screen = Screen(source, selections, routing)

    def pack(self, rows: pa.RecordBatch) -> Iterator[tuple[int, Segment]]:
        """A segment for every shard; one without rows still tells how far the stream has come."""
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
        for shard, places in self._router.route(self._alias, words, times):
            own = rows if len(places) == rows.num_rows else rows.take(pa.array(places))
            # Rows without a time belong to no shard; the first one counts them.
            yield shard, Segment(self._alias, own, newest=newest, untimed=0 if shard else untimed)


def _conform(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The columns that are read, in the types the query was checked with."""
    columns = [rows.column(field.name).cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _newest(times: pa.Array) -> int:
    newest = pc.max(times)
    return int(event_times(pa.array([newest]))[0]) if newest.is_valid else -FOREVER
