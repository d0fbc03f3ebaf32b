"""One condition of a query: all of them must hold for a combination to be a result."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from braid.model.checks import check
from braid.model.expressions.expression import Call, Expression, sources_of

MIRRORED = {
    "equal": "equal",
    "not_equal": "not_equal",
    "same": "same",
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
}
"""Each comparison, and what it becomes when its sides change places."""


@dataclass(frozen=True)
class Predicate:
    expression: Expression

    def __post_init__(self) -> None:
        check(self.expression, Expression, "a condition")

    @cached_property
    def sources(self) -> frozenset[str]:
        return sources_of(self.expression)

    @property
    def spellings(self) -> tuple[str, ...]:
        """The texts it is known by: as it is, and with its two sides the other way round."""
        if not (isinstance(self.expression, Call) and self.expression.function in MIRRORED):
            return (str(self),)
        left, right = self.expression.arguments
        return str(self), str(Predicate(Call(MIRRORED[self.expression.function], (right, left))))

    def __str__(self) -> str:
        text = str(self.expression)
        return text[1:-1] if text.startswith("(") else text
