"""Brings the joins of FROM into an order: inner joins first, then fixed joins, each with one more stream."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from braid.model.query import JoinKind, Source


@dataclass(frozen=True)
class WrittenJoin:
    """A fixed join as it stands in FROM; `visible` are the streams that its ON may read."""

    kind: JoinKind
    source: Source
    condition: exp.Expr
    visible: tuple[Source, ...]


@dataclass(frozen=True)
class JoinedStreams:
    """The inner joins of `sources` under `conditions`, and the fixed joins that follow."""

    sources: tuple[Source, ...]
    conditions: tuple[exp.Expr, ...] = ()
    fixed_joins: tuple[WrittenJoin, ...] = ()

    @property
    def shown(self) -> tuple[Source, ...]:
        """The streams whose columns can be read after these joins."""
        return (*self.sources, *(join.source for join in self.fixed_joins if join.kind.shows_right))

    @property
    def is_one_stream(self) -> bool:
        return len(self.sources) == 1 and not self.fixed_joins

    def inner(self, other: JoinedStreams, condition: exp.Expr | None) -> JoinedStreams | None:
        """The inner join of both; None if both have fixed joins, because a fixed join adds only one stream.

        Inner joins are associative: the lifetimes of all rows of a result overlap, whichever rows meet first.
        """
        if self.fixed_joins and other.fixed_joins:
            return None
        if other.fixed_joins:
            return other.inner(self, condition)
        conditions = other.conditions if condition is None else (*other.conditions, condition)
        if not self.fixed_joins:
            return JoinedStreams((*self.sources, *other.sources), (*self.conditions, *conditions))
        *earlier, last = other.sources
        joined = self
        for source in earlier:
            joined = joined.fixed(JoinKind.INNER, source, exp.true())
        return joined.fixed(JoinKind.INNER, last, exp.and_(*conditions) if conditions else exp.true())

    def outer(self, kind: JoinKind, other: JoinedStreams, condition: exp.Expr) -> JoinedStreams | None:
        """An outer, semi or anti join of both; None if neither side is a single stream that can be the right side.

        LEFT, RIGHT and FULL joins can exchange their sides.
        """
        if other.is_one_stream:
            return self.fixed(kind, other.sources[0], condition)
        if self.is_one_stream and kind.mirrored is not None:
            return other.fixed(kind.mirrored, self.sources[0], condition)
        return None

    def fixed(self, kind: JoinKind, source: Source, condition: exp.Expr) -> JoinedStreams:
        """These joins, followed by a fixed join with one more stream."""
        join = WrittenJoin(kind, source, condition, (*self.shown, source))
        return replace(self, fixed_joins=(*self.fixed_joins, join))
