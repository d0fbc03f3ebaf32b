"""All queries of Nexmark, in the order of their numbers."""

from __future__ import annotations

from benchmarks.nexmark import groups, joins, ranks, rows
from benchmarks.nexmark.query import Impossible, Query


def all_queries() -> list[Query | Impossible]:
    return sorted(
        [*rows.QUERIES, *joins.QUERIES, *groups.QUERIES, *ranks.QUERIES], key=lambda query: int(query.name[1:])
    )
