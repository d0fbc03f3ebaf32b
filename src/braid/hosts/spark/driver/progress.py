"""The figures of `SparkQuery.progress`, computed from the reports of all shards on a micro-batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, Protocol

from braid.model.query import Query
from braid.runtime.report import ShardReport
from braid.runtime.routing import Router
from braid.runtime.spread_controller import evenness


class Routed(Protocol):
    """A query and the grid of its shards."""

    @property
    def query(self) -> Query: ...

    @property
    def router(self) -> Router: ...


SECONDS = {
    "join_seconds": "seconds.join",
    "watch_seconds": "seconds.watch",
    "store_seconds": "seconds.store",
    "seconds": "seconds.total",
}
"""Fields of a report of which the largest is shown: the times of the slowest shard."""

DROPPED = ("late", "untimed")
"""Why rows are dropped: they come later than their stream allows, or their event time is null."""

SUMS = {
    "rows_joined": "rows_out",
    "state_rows": "state.rows",
    "state_bytes": "state.bytes",
    "segments": "state.segments",
    "waiting": "waiting",
}
"""Fields of a report that are added up over all shards."""


def progress_of(
    batch: int, reports: Sequence[ShardReport], spec: Routed, groups: int | None, total: Mapping[str, Any]
) -> dict[str, Any]:
    """The figures of a micro-batch.

    `groups` is the number of rows that it wrote if the query groups, else None. `total` are the rows in, out and
    dropped since the query was started.
    """
    sums = {name: sum(map(attrgetter(field), reports)) for name, field in SUMS.items()}
    return {
        "batch": batch,
        "rows_in": rows_in(reports, spec),
        "rows_out": sums["rows_joined"] if groups is None else groups,
        **sums,
        **dropped_rows(reports, spec),
        "rejected_messages": max(report.rejected_messages for report in reports),
        **{name: max(map(attrgetter(field), reports)) for name, field in SECONDS.items()},
        "evenness": evenness(reports),
        "cache": dict(Counter(report.engine for report in reports)),
        "plan": reports[0].plan,
        "total": dict(total),
    }


def dropped_rows(reports: Sequence[ShardReport], spec: Routed) -> dict[str, dict[str, int]]:
    """The rows of each stream that were dropped, by reason (see `DROPPED`)."""
    # Rows without a time are never copied: only shard 0 counts them.
    untimed = {
        source.alias: sum(report.observation.streams[source.alias].untimed for report in reports)
        for source in spec.query.inputs
    }
    return {"late": _by_stream("late", reports, spec), "untimed": untimed}


def rows_in(reports: Sequence[ShardReport], spec: Routed) -> int:
    """How many rows with an event time came in; a row that was copied to several shards counts once."""
    return sum(rows_by_stream(reports, spec).values())


def rows_by_stream(reports: Sequence[ShardReport], spec: Routed) -> dict[str, int]:
    """How many rows with an event time came in, by alias; a row that was copied to several shards counts once."""
    copied = {
        source.alias: sum(report.copied.get(source.alias, 0) for report in reports) for source in spec.query.inputs
    }
    return _by_stream("timed", reports, spec, copied)


def _by_stream(
    field: str, reports: Sequence[ShardReport], spec: Routed, copied: Mapping[str, int] | None = None
) -> dict[str, int]:
    """A count of each stream's rows; a row that was copied to several shards counts once.

    `copied` are copies of rows whose key is spread, which are among those counted.
    """
    counts: dict[str, int] = {}
    for source in spec.query.inputs:
        count = sum(getattr(report.observation.streams[source.alias], field) for report in reports)
        counts[source.alias] = (count - (copied or {}).get(source.alias, 0)) // spec.router.copies([source.alias])
    return counts
