"""Derived streams that a query offers to other queries for reuse."""

from __future__ import annotations

from dataclasses import dataclass

from braid.errors import PlanError
from braid.model.checks import check, check_each, check_name
from braid.model.expressions.expression import Column
from braid.model.query import Query, Star


@dataclass(frozen=True, slots=True)
class Flow:
    """A stream, base or derived, that is shipped from one site to another."""

    streams: frozenset[str]
    source: str
    target: str

    def __post_init__(self) -> None:
        check(self.streams, frozenset, "the streams of a flow", PlanError)
        check_name(self.source, "the source site of a flow", PlanError)
        check_name(self.target, "the target site of a flow", PlanError)


@dataclass(frozen=True)
class Advertisement:
    """A derived stream at a site: the join of the streams of `query`, with the `columns` that its rows carry.

    Without `columns` the rows carry all columns of the joined streams.

    Each of its rows has the start of the lifetime of every joined row, so that a query with shorter windows can select
    the rows it needs. If `may_weaken`, other queries may weaken the filters on the inputs of the join; `flows` are the
    streams that are shipped for it, from which the other queries compute the cost of that.
    """

    query: Query
    site: str
    flows: tuple[Flow, ...] = ()
    may_weaken: bool = False
    columns: frozenset[Column] | None = None

    def __post_init__(self) -> None:
        check(self.query, Query, "the query of an advertisement", PlanError)
        if not self.query.ends_at_joins or self.query.grouping is not None or self.query.ranking is not None:
            raise PlanError(
                "an advertised query joins streams and keeps all rows; leave out outer joins, EXISTS and GROUP BY, "
                f"not as in {self.query.text!r:.200}"
            )
        check_name(self.site, "the site of an advertisement", PlanError)
        check_each(self.flows, Flow, "the flows of an advertisement", PlanError)
        check(self.may_weaken, bool, "may_weaken of an advertisement", PlanError)
        check(self.columns, frozenset | None, "the columns of an advertisement", PlanError)

    @property
    def name(self) -> str:
        return " ⋈ ".join(source.stream for source in self.query.sources)

    def __str__(self) -> str:
        return f"{self.name} at {self.site}"


def subquery(query: Query, streams: frozenset[str]) -> Query:
    """The part of a query that concerns only these streams: their windows, and every condition that reads no others."""
    sources = tuple(source for source in query.sources if source.alias in streams)
    text = f"{' ⋈ '.join(source.alias for source in sources)} of: {query.text}"
    return Query(text, sources, (Star(None),), query.conditions_within(streams))
