"""One condition of a query. A combination is a result if all conditions of the query hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from braid.model.checks import check
from braid.model.expressions.expression import Call, Expression, HostExpression, sources_of

MIRRORED = {
    "equal": "equal",
    "not_equal": "not_equal",
    "same": "same",
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
}
"""The comparison that results when the two sides are swapped: `a < b` is `b > a`."""


@dataclass(frozen=True)
class Predicate:
    """A condition, as an expression of type boolean.

    `whole` is the same as one expression of the host, if the host computes a part of it; a bound condition has none.
    """

    expression: Expression
    whole: HostExpression | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        check(self.expression, Expression, "a condition")

    @cached_property
    def sources(self) -> frozenset[str]:
        return sources_of(self.expression)

    @property
    def spellings(self) -> tuple[str, ...]:
        """The texts that mean this condition: as written and, for a comparison, with its two sides swapped."""
        if not (isinstance(self.expression, Call) and self.expression.function in MIRRORED):
            return (str(self),)
        left, right = self.expression.arguments
        return str(self), str(Predicate(Call(MIRRORED[self.expression.function], (right, left))))

    @property
    def in_brackets(self) -> str:
        """The text beside other conditions: AND and OR in brackets, so that it is clear what belongs together."""
        connects = isinstance(self.expression, Call) and self.expression.function in ("and", "or")
        return f"({self})" if connects else str(self)

    def __str__(self) -> str:
        # An operator prints itself in parentheses, which a condition on its own does not need.
        text = str(self.expression)
        return text[1:-1] if text.startswith("(") else text


def conjunction(predicates: Sequence[Predicate], word: str = "AND") -> str:
    """The text of conditions that must all hold, with `word` between them."""
    if len(predicates) == 1:
        return str(predicates[0])
    return f" {word} ".join(predicate.in_brackets for predicate in predicates)
