"""What a query selects."""

from __future__ import annotations

from dataclasses import dataclass, field

from braid.errors import Span
from braid.model.expression import Expression


@dataclass(frozen=True, slots=True)
class Output:
    """One column of the result."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class Star:
    """Every column of one source, or of all of them, until binding tells which those are."""

    source: str | None
    span: Span | None = field(default=None, compare=False, repr=False)
