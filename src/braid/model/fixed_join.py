"""Outer, semi and anti joins, and the inner joins that follow one of these. No plan moves them.

A fixed join joins what comes before it (the left side: combinations of rows, with the overlap of their lifetimes) with
one more stream (the right side). Two rows are partners if they meet all conditions of ON and are alive together, at
any time. A row of a preserved side that never has a partner is a result of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from braid.model.checks import check, check_each
from braid.model.predicate import Predicate, conjunction
from braid.model.source import Source
from braid.model.window import FOREVER, Tumble, Window


class JoinKind(Enum):
    """The kinds of fixed joins; the value is how SQL writes the kind. An inner join is fixed if it follows another."""

    INNER = "JOIN"
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

    @property
    def mirrored(self) -> JoinKind | None:
        """The kind that gives the same with its two sides exchanged; None for semi and anti joins."""
        return _MIRRORED.get(self)


_MIRRORED = {
    JoinKind.INNER: JoinKind.INNER,
    JoinKind.LEFT: JoinKind.RIGHT,
    JoinKind.RIGHT: JoinKind.LEFT,
    JoinKind.FULL: JoinKind.FULL,
}


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


def lags(inner: Iterable[Window], joins: Iterable[tuple[JoinKind, Window]]) -> Iterator[int]:
    """For each fixed join: how long after its start a row of its left side comes at the latest; FOREVER if ever.

    A row without a partner comes when it ends, so how long rows live decides. `inner` are the windows of the inner
    joins, whose combinations come when they start.
    """
    lag, longest = 0, min(map(longest_lifetime, inner))
    for kind, window in joins:
        yield lag
        right = longest_lifetime(window)
        later = lag + right if kind.preserves_right else 0
        waiting = 0 if kind in (JoinKind.INNER, JoinKind.RIGHT) else longest
        lag = min(max(lag, waiting, later), FOREVER)
        if kind is JoinKind.INNER:
            longest = min(longest, right)
        elif kind.preserves_right:
            longest = max(longest, right) if kind.preserves_left else right


def longest_lifetime(window: Window) -> int:
    """How long a row of a window lives at most; FOREVER if that is not known."""
    if isinstance(window, Tumble):
        return window.length
    return FOREVER if window.lifetime is None else window.lifetime
