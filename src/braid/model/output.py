"""The columns that a query selects."""

from __future__ import annotations

from dataclasses import dataclass, field

from braid.errors import Span
from braid.model.checks import check
from braid.model.expressions.expression import Expression

EVENT_TIME_COLUMN = "event_time"
"""The name, in queries and in results, of a result's event time: the time from which all its rows were alive."""


@dataclass(frozen=True, slots=True)
class Output:
    """One column of the result."""

    name: str
    expression: Expression

    def __post_init__(self) -> None:
        check(self.name, str, "the name of a column")
        check(self.expression, Expression, f"the column '{self.name}'")


@dataclass(frozen=True, slots=True)
class Star:
    """`stream.*` or, if `source` is None, `*`. Binding replaces it with an `Output` for each column."""

    source: str | None
    span: Span | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        check(self.source, str | None, "the stream of a star")
