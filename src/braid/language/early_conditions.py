"""Conditions come as early as they give the same: in WHERE, a condition on few streams need not wait for all joins.

A condition on the rows so far leaves rows out, and no other row cares: whether a row has a partner does not depend on
other rows of its side. So it may come before a join that keeps its left rows, but not before one that also gives right
rows alone, which a left row that was left out might have been a partner of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from braid.model.predicate import Predicate
from braid.model.query import FixedJoin, JoinKind


def with_early_conditions(
    aliases: Sequence[str], joins: Sequence[FixedJoin], filters: Sequence[Predicate]
) -> tuple[tuple[Predicate, ...], tuple[FixedJoin, ...], tuple[Predicate, ...]]:
    """The conditions for the inner joins of `aliases`, the fixed joins with theirs, and what is left of the filters.

    A condition goes to the inner joins, or else to the first fixed inner join that may check it.
    """
    visible = [frozenset(aliases)]
    for join in joins:
        visible.append(visible[-1] | ({join.source.alias} if join.kind.shows_right else frozenset()))
    inner: list[Predicate] = []
    conditions: list[list[Predicate]] = [[] for _ in joins]
    remaining: list[Predicate] = []
    written = [(predicate, number) for number, join in enumerate(joins) for predicate in join.predicates]
    for predicate, number in (*written, *((predicate, len(joins)) for predicate in filters)):
        is_filter = number == len(joins) or joins[number].kind is JoinKind.INNER
        place = _earliest(predicate, number, visible, joins) if is_filter else number
        if place is None:
            inner.append(predicate)
        else:
            (remaining if place == len(joins) else conditions[place]).append(predicate)
    fixed = tuple(replace(join, predicates=tuple(own)) for join, own in zip(joins, conditions, strict=True))
    return tuple(inner), fixed, tuple(remaining)


def _earliest(
    predicate: Predicate, place: int, visible: Sequence[frozenset[str]], joins: Sequence[FixedJoin]
) -> int | None:
    """The first place for a condition, from the number of a join backwards; None is with the inner joins."""
    best: int | None = place
    for number in range(place, -1, -1):
        if number < len(joins):
            if not predicate.sources <= visible[number + 1]:
                return best
            if joins[number].kind is JoinKind.INNER:
                best = number
            if joins[number].kind.preserves_right:
                return best
    return None if predicate.sources <= visible[0] else best
