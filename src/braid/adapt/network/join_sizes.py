"""The expected bytes per row of joins that no channel carries yet.

A row of a join has the columns of its streams, so it is about as wide as their rows together. But each batch on a
channel also has a header and an Arrow schema. If a join makes few rows in a batch, these add much to each row. Without
them, a plan that ships such a join would look too cheap.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

from braid.model.query import Query
from braid.model.statistics import Sized, Statistics
from braid.planning.cost.batch_headers import batches_per_row, bytes_of_header
from braid.planning.cost.figures import Expected

MOST_STREAMS = 8
"""With more streams, there are too many sets of streams to compute the size of each."""


def sizes_of_joins(query: Query, known: Statistics, batches: Mapping[str, float]) -> dict[Sized, float]:
    """The sizes of all joins of a query, given its statistics and the batches per second of each stream.

    Each batch of a stream is expected to make one batch of the join, but a batch has at least one row. The result is
    empty if the batches of a stream are not known, or if there are more than `MOST_STREAMS` streams.
    """
    if len(query.aliases) > MOST_STREAMS or any(alias not in batches for alias in query.aliases):
        return {}
    widths = {alias: _width(query, alias, known, batches[alias]) for alias in query.aliases}
    expected = Expected.of(query, known)
    sizes: dict[Sized, float] = {}
    for streams in _joins(query):
        header = bytes_of_header(query, streams)
        width = sum(widths[alias] for alias in streams)
        all_batches = sum(batches[alias] for alias in streams)
        mask = sum(1 << query.aliases.index(alias) for alias in streams)
        sizes[streams] = width + header * batches_per_row(all_batches, expected.rate(mask))
        for head in streams:
            head_rate = expected.flow(query.aliases.index(head), mask)
            sizes[head, streams] = width + header * batches_per_row(batches[head], head_rate)
    return sizes


def _joins(query: Query) -> Iterator[frozenset[str]]:
    """Every set of two or more streams."""
    for count in range(2, len(query.aliases) + 1):
        yield from map(frozenset, combinations(query.aliases, count))


def _width(query: Query, alias: str, known: Statistics, batches: float) -> float:
    """The bytes of a row of a stream, without its share of the header of a batch."""
    rate, size = known.rates[alias], known.sizes[alias]
    return max(1.0, size - bytes_of_header(query, frozenset([alias])) * batches_per_row(batches, rate))
