"""Outer, semi and anti joins. They follow the inner joins in the order of the text, and no plan moves them.

A fixed join joins what comes before it (the left side: combinations of rows, with the overlap of their lifetimes) with
one more stream (the right side). Two rows are partners if they meet all conditions of ON and are alive together, at
any time. A row of a preserved side that never has a partner is a result of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from braid.model.checks import check, check_each
from braid.model.predicate import Predicate, conjunction
from braid.model.source import Source


class JoinKind(Enum):
    """The kinds of joins that are not inner joins; the value is how SQL writes the kind."""

    LEFT = "LEFT JOIN"
    RIGHT = "RIGHT JOIN"
    FULL = "FULL JOIN"
    SEMI = "LEFT SEMI JOIN"
    ANTI = "LEFT ANTI JOIN"

    @property
    def preserves_left(self) -> bool:
        """Whether a left row without a partner is a result; with nulls for the right side, unless it is hidden."""
        return self in (JoinKind.LEFT, JoinKind.FULL, JoinKind.ANTI)

    @property
    def preserves_right(self) -> bool:
        """Whether a right row without a partner is a result, with nulls for the left side."""
        return self in (JoinKind.RIGHT, JoinKind.FULL)

    @property
    def shows_right(self) -> bool:
        """Whether results have columns of the right side: each left row then comes once with each of its partners."""
        return self not in (JoinKind.SEMI, JoinKind.ANTI)


@dataclass(frozen=True, slots=True)
class FixedJoin:
    """One fixed join: its kind, the stream of its right side, and the conditions of ON."""

    kind: JoinKind
    source: Source
    predicates: tuple[Predicate, ...] = ()

    def __post_init__(self) -> None:
        check(self.kind, JoinKind, "the kind of a join")
        check(self.source, Source, "the stream of a join")
        check_each(self.predicates, Predicate, f"the conditions of the join with '{self.source.alias}'")

    def __str__(self) -> str:
        return f"{self.kind.value} {self.source} ON {conjunction(self.predicates) or 'TRUE'}"
