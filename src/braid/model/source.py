"""A stream as a query reads it: its alias and its window."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pyarrow as pa

from braid.errors import PlanError, QueryError, Span
from braid.model.checks import check, check_each, check_name
from braid.model.output import Output
from braid.model.stream import Stream
from braid.model.window import Window


def two_streams_called(alias: str, text: str, span: Span | None) -> QueryError:
    """The error for an alias that two streams share; `span` is its second occurrence."""
    return QueryError(
        f"two streams are called '{alias}'", text, span, "give one of them another name: stream [..] AS name"
    )


@dataclass(frozen=True, slots=True)
class Source:
    """One entry of FROM: a stream, its alias and its window.

    `declaration` is None until the query is bound to the streams it will run on. Its last columns are `computed`: the
    host computes them from the others, where the stream enters the query.
    """

    alias: str
    stream: str
    window: Window
    declaration: Stream | None = None
    span: Span | None = field(default=None, compare=False, repr=False)
    computed: tuple[Output, ...] = ()

    def __post_init__(self) -> None:
        check_name(self.alias, "the alias of a stream")
        check_name(self.stream, "the name of a stream")
        check(self.window, Window, f"the window of '{self.alias}'")
        check(self.declaration, Stream | None, f"the declaration of '{self.alias}'")
        check_each(self.computed, Output, f"the computed columns of '{self.alias}'")

    @property
    def declared(self) -> Stream:
        """The declaration of the stream; `PlanError` if the query is not bound."""
        if self.declaration is None:
            raise PlanError(f"stream '{self.stream}' is not declared yet; bind the query to its streams first")
        return self.declaration

    @property
    def plain_declaration(self) -> Stream:
        """The declaration without the computed columns."""
        columns = self.declared.schema
        return replace(self.declared, schema=pa.schema(list(columns)[: len(columns) - len(self.computed)]))

    def __str__(self) -> str:
        alias = "" if self.alias == self.stream else f" AS {self.alias}"
        return f"{self.stream} {self.window}{alias}"
