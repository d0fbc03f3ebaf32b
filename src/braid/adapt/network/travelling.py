"""The bytes per row of joins that no channel carries yet.

A batch on a channel has a header and an Arrow schema, however few rows are in it. A join with few rows makes batches
with few rows, so each of its rows carries more of that. A plan that ships such a join looks too cheap if its rows are
taken to be as large as those of its streams together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

from braid.model.needed_columns import columns_needed_outside
from braid.model.query import Query
from braid.model.statistics import Sized, Statistics
from braid.planning.cost.figures import Expected

BYTES_OF_A_BATCH, BYTES_OF_A_COLUMN = 500, 140
"""What a batch has besides its rows: its header, and the schema of each column."""

MOST_STREAMS = 8
"""With more streams there are too many joins to tell the size of each."""


def sizes_of_joins(query: Query, known: Statistics, batches: Mapping[str, float]) -> dict[Sized, float]:
    """The sizes of all joins of a query, given its statistics and the batches per second of each stream.

    Each batch of a stream makes one batch of a join, unless the join has fewer rows than that.
    """
    if len(query.aliases) > MOST_STREAMS or any(alias not in batches for alias in query.aliases):
        return {}
    widths = {alias: _width(query, alias, known, batches[alias]) for alias in query.aliases}
    expected = Expected.of(query, known)
    sizes: dict[Sized, float] = {}
    for streams in _joins(query):
        overhead = _overhead(query, streams, len(streams))
        width = sum(widths[alias] for alias in streams)
        most = sum(batches[alias] for alias in streams)
        mask = sum(1 << query.aliases.index(alias) for alias in streams)
        sizes[streams] = width + overhead * _share(most, expected.rate(mask))
        for head in streams:
            flow = expected.flow(query.aliases.index(head), mask)
            sizes[head, streams] = width + overhead * _share(batches[head], flow)
    return sizes


def _joins(query: Query) -> Iterator[frozenset[str]]:
    for count in range(2, len(query.aliases) + 1):
        yield from map(frozenset, combinations(query.aliases, count))


def _width(query: Query, alias: str, known: Statistics, batches: float) -> float:
    """The bytes of a row of a stream without its share of the batch."""
    rate, size = known.rates[alias], known.sizes[alias]
    return max(1.0, size - _overhead(query, frozenset([alias]), 1) * _share(batches, rate))


def _overhead(query: Query, streams: frozenset[str], times: int) -> float:
    """The bytes of a batch besides its rows: each has columns for event times, too."""
    columns = len(set(columns_needed_outside(query, streams))) + times
    return BYTES_OF_A_BATCH + BYTES_OF_A_COLUMN * columns


def _share(batches: float, rows: float) -> float:
    """The share of a batch that a row is; each batch has at least one row."""
    return min(1.0, batches / rows) if rows else 1.0
