"""EXISTS, IN and EXCEPT: tests of a result against another stream, at the event time of the result."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

from braid.model.checks import check, check_each
from braid.model.expressions.expression import Expression
from braid.model.predicate import Predicate, conjunction
from braid.model.source import Source


@dataclass(frozen=True, slots=True)
class Existence:
    """Keeps a result if a row of `source`, alive at its event time, meets all `predicates`; if `negated`, if none does.

    `members` are pairs of a value of the result and one of the source, as IN compares them; `braid.language.bind` turns
    them into predicates.
    """

    source: Source
    predicates: tuple[Predicate, ...] = ()
    negated: bool = True
    members: tuple[tuple[Expression, Expression], ...] = ()

    def __post_init__(self) -> None:
        check(self.source, Source, "the stream of an existence test")
        check_each(self.predicates, Predicate, f"the conditions of the existence test of '{self.source.alias}'")
        check(self.negated, bool, "whether an existence test is negated")
        for member in self.members:
            check_each(member, Expression, "the values that IN compares")

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """Every expression of the test."""
        return (*(predicate.expression for predicate in self.predicates), *chain.from_iterable(self.members))

    def __str__(self) -> str:
        conditions = conjunction(self.predicates)
        word = "NOT EXISTS" if self.negated else "EXISTS"
        return f"{word} ({self.source}{f' WHERE {conditions}' if conditions else ''})"
