"""Statistics for a query that nothing is known of yet."""

from __future__ import annotations

from itertools import combinations

from braid.model.query import Query
from braid.model.statistics import Statistics, Subject

WITHOUT_STATISTICS = "at_sink"
"""The planner for queries that nothing is known of."""


def assumed_statistics(query: Query) -> Statistics:
    """One row a second of each stream, and conditions that always hold: a plan may be bad for that, never wrong."""
    ones = dict.fromkeys(query.aliases, 1.0)
    selectivities: dict[Subject, float] = {frozenset(pair): 1.0 for pair in combinations(query.aliases, 2)}
    selectivities |= {str(predicate): 1.0 for predicate in query.predicates}
    return Statistics(rates=ones, populations=ones, selectivities=selectivities)
