"""Names of derived streams: those of their parts, with a sign between them that no name of a stream has."""

from __future__ import annotations

from braid.model.query import Query
from braid.model.tree import JoinTree, Leaf


def separator(query: Query, sign: str) -> str:
    """A sign, repeated until no name of a stream has it."""
    found = sign
    while any(found in alias for alias in query.aliases):
        found += sign
    return found


def input_name(query: Query, part: JoinTree) -> str:
    """A name for an input of a partitioned join; that of a join is told apart from streams that have a sign in theirs.

    >>> from braid.language import parse
    >>> from braid.model.tree import Merge
    >>> input_name(parse("SELECT * FROM a [NOW], b [NOW], c [NOW] AS `a+b`"), Merge((Leaf("a"), Leaf("b"))))
    'a++b'
    """
    return part.stream if isinstance(part, Leaf) else separator(query, "+").join(sorted(part.streams))
