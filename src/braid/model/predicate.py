"""One condition of a query: all of them must hold for a combination to be a result."""

from __future__ import annotations

from dataclasses import dataclass

from braid.model.expression import Expression, sources_of


@dataclass(frozen=True, slots=True)
class Predicate:
    expression: Expression

    @property
    def sources(self) -> frozenset[str]:
        return sources_of(self.expression)

    def __str__(self) -> str:
        text = str(self.expression)
        return text[1:-1] if text.startswith("(") else text
