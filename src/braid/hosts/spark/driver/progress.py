"""What `SparkQuery.progress` tells of a micro-batch, from the reports of its shards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

from braid.runtime.query_spec import QuerySpec
from braid.runtime.report import ShardReport

SECONDS = {
    "join_seconds": "seconds.join",
    "watch_seconds": "seconds.watch",
    "store_seconds": "seconds.store",
    "seconds": "seconds.total",
}
"""What the slowest shard spent on the join, on statistics, on waiting for the state store, and in all."""

SUMS = {
    "rows_out": "rows_out",
    "state_rows": "state.rows",
    "state_bytes": "state.bytes",
    "segments": "state.segments",
    "waiting": "waiting",
}


def progress_of(
    batch: int, reports: Sequence[ShardReport], spec: QuerySpec, total: Mapping[str, int]
) -> dict[str, Any]:
    """The micro-batch as plain values; `total` is what has gone in and come out since the query was started."""
    return {
        "batch": batch,
        "rows_in": rows_in(reports, spec),
        **{name: sum(map(attrgetter(figure), reports)) for name, figure in SUMS.items()},
        "late": _by_stream("late", reports, spec),
        "untimed": {
            source.alias: sum(report.observation.streams[source.alias].untimed for report in reports)
            for source in spec.query.inputs
        },
        "rejected_messages": max(report.rejected_messages for report in reports),
        **{name: max(map(attrgetter(figure), reports)) for name, figure in SECONDS.items()},
        "cache": dict(Counter(report.engine for report in reports)),
        "plan": reports[0].plan,
        "total": dict(total),
    }


def rows_in(reports: Sequence[ShardReport], spec: QuerySpec) -> int:
    """The rows with an event time that came in, each once."""
    return sum(_by_stream("timed", reports, spec).values())


def _by_stream(figure: str, reports: Sequence[ShardReport], spec: QuerySpec) -> dict[str, int]:
    """A count of the rows of each stream; a row that was copied to several shards counts once."""
    counts: dict[str, int] = {}
    for source in spec.query.inputs:
        count = sum(getattr(report.observation.streams[source.alias], figure) for report in reports)
        counts[source.alias] = count // spec.router.copies([source.alias])
    return counts
