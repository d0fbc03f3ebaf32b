"""EXISTS, IN and EXCEPT: tests of a result against another stream, at the event time of the result."""

from __future__ import annotations

from dataclasses import dataclass

from braid.model.checks import check, check_each
from braid.model.expressions.expression import Expression
from braid.model.predicate import Predicate, conjunction
from braid.model.source import Source


@dataclass(frozen=True, slots=True)
class Existence:
    """Keeps a result if a row of `source`, alive at its event time, meets all `predicates`; if `negated`, if none does.

    `membership` is a value of the result and one of the source, as IN compares them; `braid.language.bind` turns it
    into a predicate.
    """

    source: Source
    predicates: tuple[Predicate, ...] = ()
    negated: bool = True
    membership: tuple[Expression, Expression] | None = None

    def __post_init__(self) -> None:
        check(self.source, Source, "the stream of an existence test")
        check_each(self.predicates, Predicate, f"the conditions of the existence test of '{self.source.alias}'")
        check(self.negated, bool, "whether an existence test is negated")
        if self.membership is not None:
            check_each(self.membership, Expression, "the values that IN compares")

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """Every expression of the test."""
        return (*(predicate.expression for predicate in self.predicates), *(self.membership or ()))

    def __str__(self) -> str:
        conditions = conjunction(self.predicates)
        word = "NOT EXISTS" if self.negated else "EXISTS"
        return f"{word} ({self.source}{f' WHERE {conditions}' if conditions else ''})"
