"""Names of derived streams: the names of the joined streams, with a separator that occurs in no stream name."""

from __future__ import annotations

from braid.model.query import Query
from braid.model.tree import JoinTree, Leaf


def separator(query: Query, sign: str) -> str:
    """The character `sign`, repeated until no stream of the query has it in its name."""
    repeated = sign
    while any(repeated in alias for alias in query.aliases):
        repeated += sign
    return repeated


def input_name(query: Query, subtree: JoinTree) -> str:
    """A name for an input of a partitioned join. The name of a join differs from the names of all streams.

    >>> from braid.language import parse
    >>> from braid.model.tree import Merge
    >>> input_name(parse("SELECT * FROM a [NOW], b [NOW], c [NOW] AS `a+b`"), Merge((Leaf("a"), Leaf("b"))))
    'a++b'
    """
    return subtree.stream if isinstance(subtree, Leaf) else separator(query, "+").join(sorted(subtree.streams))
