"""Names for columns that Braid adds to results: no column of the query has them."""

from __future__ import annotations

from collections.abc import Iterable

from braid.model.output import EVENT_TIME_COLUMN
from braid.model.query import Query


def free_name(name: str, columns: Iterable[str]) -> str:
    """The name, with underscores before it if a column has it already; Spark ignores case."""
    taken = {column.lower() for column in columns}
    while name in taken:
        name = f"_{name}"
    return name


def event_time_name(query: Query) -> str:
    """The name of the event-time column in the results of a query."""
    outputs = [
        *query.outputs,
        *(query.projection.outputs if query.projection is not None else ()),
        *(query.grouping.selected if query.grouping is not None else ()),
        *(query.ranking.outputs if query.ranking is not None else ()),
    ]
    return free_name(EVENT_TIME_COLUMN, [getattr(output, "name", "") for output in outputs])
