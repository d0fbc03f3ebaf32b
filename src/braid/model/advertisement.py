"""Derived streams that are there for others to use."""

from __future__ import annotations

from dataclasses import dataclass

from braid.errors import PlanError
from braid.model.checks import check, check_each, check_name
from braid.model.query import Query, Star


@dataclass(frozen=True, slots=True)
class Flow:
    """A stream, base or derived, that travels from one site to another."""

    streams: frozenset[str]
    source: str
    target: str

    def __post_init__(self) -> None:
        check(self.streams, frozenset, "the streams of a flow", PlanError)
        check_name(self.source, "where a flow comes from", PlanError)
        check_name(self.target, "where a flow goes", PlanError)


@dataclass(frozen=True)
class Advertisement:
    """The result of joining some streams, with all their columns, is there at a site for whoever can use it.

    Its rows say when each of their parts began, so that who has shorter windows can tell which of them are for him.
    `query` says what it is: which streams, under which windows, joined and filtered how. If its owner lets others
    weaken the filters on its inputs (`may_weaken`), `flows` says what travels where for it, so that they know what that
    costs.
    """

    query: Query
    site: str
    flows: tuple[Flow, ...] = ()
    may_weaken: bool = False

    def __post_init__(self) -> None:
        check(self.query, Query, "what is advertised", PlanError)
        if self.query.exclusions or self.query.grouping is not None:
            raise PlanError(
                "what is advertised is a join of streams with all its rows; leave out NOT EXISTS, EXCEPT and GROUP BY, "
                f"not as in {self.query.text!r:.200}"
            )
        check_name(self.site, "the site of what is advertised", PlanError)
        check_each(self.flows, Flow, "the flows of what is advertised", PlanError)
        check(self.may_weaken, bool, "whether filters of what is advertised may be weakened", PlanError)

    @property
    def name(self) -> str:
        return " ⋈ ".join(source.stream for source in self.query.sources)

    def __str__(self) -> str:
        return f"{self.name} at {self.site}"


def subquery(query: Query, streams: frozenset[str]) -> Query:
    """What a query asks of some of its streams alone: their windows, and every condition on nothing else."""
    sources = tuple(source for source in query.sources if source.alias in streams)
    text = f"{' ⋈ '.join(source.alias for source in sources)} of: {query.text}"
    return Query(text, sources, (Star(None),), query.conditions_within(streams))
