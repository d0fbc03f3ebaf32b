"""The prefilter of long probe sequences on one key: ask later windows for the key before the first join."""

from __future__ import annotations

from collections.abc import Container

from braid.model.program import Join, SiteProgram

PREFILTER_FROM = 5
"""A head is prefiltered if it must match in at least this many windows on one key."""


def prefilter_joins(program: SiteProgram, aliases: Container[str], first: Join) -> tuple[Join, ...]:
    """The later joins whose windows the prefilter asks; none unless a long sequence joins on one key all the way.

    Only windows of streams (`aliases`) are asked. A join state may be incomplete, so no match there means nothing.
    """
    if first.probe not in aliases or first.stream not in aliases or len(first.keys) != 1:
        return ()
    sequence = [first]
    following = _only_join_of(program, first.result)
    while following is not None and following.keys == first.keys:
        sequence.append(following)
        following = _only_join_of(program, following.result)
    if following is not None or len(sequence) < PREFILTER_FROM:
        return ()
    return tuple(join for join in sequence[1:] if join.stream in aliases)


def _only_join_of(program: SiteProgram, stream: str) -> Join | None:
    """The join that the rows of a stream go through, if there is exactly one."""
    joins = [join for join in program.all_of(Join) if join.probe == stream]
    return joins[0] if len(joins) == 1 else None
