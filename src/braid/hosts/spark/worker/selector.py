"""SELECT and HAVING of a grouped query, evaluated in workers over the groups that Spark has made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from braid.engine.output.emitter import EVENT_TIME_TYPE
from braid.engine.output.groups import Selection
from braid.runtime.query_spec import QuerySpec


def group_times(spec: QuerySpec) -> list[str]:
    """The name of the groups' event-time column, if the query groups by a window; else no name."""
    grouping = spec.query.grouping
    return [] if grouping is None or grouping.window is None else [spec.event_time]


class Selector:
    """Evaluates SELECT and HAVING over groups with the engine's own expressions, as a function for `mapInArrow`.

    `spec` is the JSON of a `QuerySpec`. Spark pickles this object for the workers, so it holds nothing else.
    """

    def __init__(self, spec: str) -> None:
        self._spec = spec

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spec = QuerySpec.from_json(self._spec)
        grouping, inputs = spec.query.grouping, spec.projected_schema
        assert grouping is not None
        times = group_times(spec)
        select = Selection(grouping, inputs, times)
        types = grouping.group_types(inputs) | dict.fromkeys(times, EVENT_TIME_TYPE)
        for batch in batches:
            columns = [batch.column(name).cast(type_) for name, type_ in types.items()]
            selected = select(pa.RecordBatch.from_arrays(columns, schema=pa.schema(types)))
            # Named by position, because two columns may have the same name.
            yield selected.rename_columns([str(position) for position in range(selected.num_columns)])
