"""Which columns of some joined streams a query still needs."""

from __future__ import annotations

from collections.abc import Iterator

from braid.model.expressions.expression import Column, columns_of
from braid.model.query import Query


def columns_needed_outside(query: Query, inside: frozenset[str]) -> Iterator[Column]:
    """The columns of some joined streams that the rest of the query reads: results, and conditions on others too."""
    read = [column for expression in query.selected for column in columns_of(expression)]
    for tied in query.graph.classes:
        if tied.sources & inside and tied.sources - inside:
            alias = next(alias for alias in query.aliases if alias in tied.sources & inside)
            read += columns_of(tied.key(alias))
    for residual in query.graph.residuals:
        if residual.sources - inside:
            read += columns_of(residual.expression)
    return (column for column in read if column.source in inside)
