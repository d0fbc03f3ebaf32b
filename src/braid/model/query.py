"""A continuous query: its streams and their windows, the conditions that join them, and the columns of the result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from braid.errors import ModelError, PlanError, QueryError, Span
from braid.model.checks import check, check_each, check_name
from braid.model.expressions.expression import Column, Expression, columns_of
from braid.model.graph import JoinGraph
from braid.model.grouping import Grouping
from braid.model.output import Output as Output
from braid.model.output import Star as Star
from braid.model.predicate import Predicate, conjunction
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

    `declaration` is None until the query is bound to the streams it will run on.
    """

    alias: str
    stream: str
    window: Window
    declaration: Stream | None = None
    span: Span | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_name(self.alias, "the alias of a stream")
        check_name(self.stream, "the name of a stream")
        check(self.window, Window, f"the window of '{self.alias}'")
        check(self.declaration, Stream | None, f"the declaration of '{self.alias}'")

    @property
    def declared(self) -> Stream:
        """The declaration of the stream; `PlanError` if the query is not bound."""
        if self.declaration is None:
            raise PlanError(f"stream '{self.stream}' is not declared yet; bind the query to its streams first")
        return self.declaration

    def __str__(self) -> str:
        alias = "" if self.alias == self.stream else f" AS {self.alias}"
        return f"{self.stream} {self.window}{alias}"


@dataclass(frozen=True, slots=True)
class Exclusion:
    """NOT EXISTS or EXCEPT: drops a result if a row of `source`, alive at its event time, meets all `predicates`."""

    source: Source
    predicates: tuple[Predicate, ...] = ()

    def __post_init__(self) -> None:
        check(self.source, Source, "the stream of an exclusion")
        check_each(self.predicates, Predicate, f"the conditions of the exclusion of '{self.source.alias}'")

    def __str__(self) -> str:
        conditions = conjunction(self.predicates)
        return f"NOT EXISTS ({self.source}{f' WHERE {conditions}' if conditions else ''})"


@dataclass(frozen=True)
class Query:
    """A query as parsed; `braid.language.bind` returns the same query with every name resolved.

    If there is a `grouping`, the outputs are its inputs. `exclusions` drop combinations after the last join, so plans
    concern only `sources`.
    """

    text: str
    sources: tuple[Source, ...]
    outputs: tuple[Output | Star, ...]
    predicates: tuple[Predicate, ...] = ()
    grouping: Grouping | None = None
    exclusions: tuple[Exclusion, ...] = ()

    def __post_init__(self) -> None:
        check(self.text, str, "the text of a query")
        check_each(self.sources, Source, "the streams of a query")
        check_each(self.outputs, Output | Star, "the columns of a query")
        check_each(self.predicates, Predicate, "the conditions of a query")
        check(self.grouping, Grouping | None, "the groups of a query")
        check_each(self.exclusions, Exclusion, "the exclusions of a query")
        if not self.sources:
            raise QueryError("a query needs at least one stream", self.text)
        if not self.outputs and self.grouping is None:
            raise ModelError("a query selects at least one column; Star(None) is all of them")
        seen: set[str] = set()
        for source in self.inputs:
            if source.alias in seen:
                raise two_streams_called(source.alias, self.text, source.span)
            seen.add(source.alias)
        joined = frozenset(self.aliases)
        self._check_columns((*self.selected, *(predicate.expression for predicate in self.predicates)), joined)
        for exclusion in self.exclusions:
            conditions = [predicate.expression for predicate in exclusion.predicates]
            self._check_columns(conditions, joined | {exclusion.source.alias})
        for output in self.outputs:
            if isinstance(output, Star) and output.source is not None and output.source not in joined:
                raise QueryError(f"'{output.source}' is not a stream of this query", self.text, output.span)

    def _check_columns(self, expressions: Iterable[Expression], known: frozenset[str]) -> None:
        for expression in expressions:
            for column in columns_of(expression):
                if column.source is not None and column.source not in known:
                    raise QueryError(f"'{column.source}' is not a stream of this query", self.text, column.span)

    @property
    def selected(self) -> tuple[Expression, ...]:
        """The expressions of the result's columns, without stars."""
        return tuple(output.expression for output in self.outputs if isinstance(output, Output))

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """Every expression of the query: of its columns, its conditions and its exclusions."""
        predicates = list(self.predicates)
        for exclusion in self.exclusions:
            predicates.extend(exclusion.predicates)
        return (*self.selected, *(predicate.expression for predicate in predicates))

    @property
    def inputs(self) -> tuple[Source, ...]:
        """All streams the query reads: the joined ones, then those of the exclusions."""
        return (*self.sources, *(exclusion.source for exclusion in self.exclusions))

    @property
    def compared(self) -> tuple[Column, ...]:
        """The columns of joined streams that the conditions of exclusions read, each once."""
        columns: list[Column] = []
        for exclusion in self.exclusions:
            for predicate in exclusion.predicates:
                read = columns_of(predicate.expression)
                columns.extend(column for column in read if column.source != exclusion.source.alias)
        return tuple(dict.fromkeys(columns))

    @cached_property
    def aliases(self) -> tuple[str, ...]:
        """The aliases of the joined streams."""
        return tuple(source.alias for source in self.sources)

    @property
    def bound(self) -> bool:
        """Whether every name of the query has been resolved against declared streams."""
        return all(source.declaration is not None for source in self.inputs)

    @property
    def counts_rows(self) -> bool:
        """Whether a joined stream has a window that counts rows, so that rows must be processed in event-time order."""
        return any(source.window.counts_rows for source in self.sources)

    def source(self, alias: str) -> Source:
        return next(source for source in self.inputs if source.alias == alias)

    @cached_property
    def schemas(self) -> Mapping[str, pa.Schema]:
        """The schema of each joined stream that is declared."""
        return {source.alias: source.declaration.schema for source in self.sources if source.declaration is not None}

    @cached_property
    def graph(self) -> JoinGraph:
        """The join graph of the conditions.

        Before binding, it exists only if every column in a condition is written with its stream.
        """
        for predicate in self.predicates:
            for column in columns_of(predicate.expression):
                if column.source is None:
                    raise QueryError(
                        f"which stream does column '{column.name}' belong to?",
                        self.text,
                        column.span,
                        f"write it as stream.{column.name}, or bind the query to its streams first",
                    )
        return JoinGraph.of(self.aliases, self.predicates, self.schemas)

    def conditions_within(self, streams: frozenset[str]) -> tuple[Predicate, ...]:
        """Every condition that reads no stream but these.

        This includes equalities that follow through other streams: `a.k = c.k AND c.k = b.k` implies `a.k = b.k`. A
        condition that reads no stream belongs to the first stream of the query. The answer is cached, because the
        search for derived streams to reuse asks for the same streams many times.
        """
        if streams not in self._conditions_within:
            self._conditions_within[streams] = self._find_conditions_within(streams)
        return self._conditions_within[streams]

    @cached_property
    def _conditions_within(self) -> dict[frozenset[str], tuple[Predicate, ...]]:
        return {}

    def _find_conditions_within(self, streams: frozenset[str]) -> tuple[Predicate, ...]:
        first = frozenset(self.aliases[:1])
        written = [predicate for predicate in self.predicates if (predicate.sources or first) <= streams]
        aliases = tuple(alias for alias in self.aliases if alias in streams)
        graph_within = JoinGraph.of(aliases, written, self.schemas)
        known = {*written, *graph_within.equalities_within(streams, self.schemas)}
        equalities = self.graph.equalities_within(streams, self.schemas)
        return (*written, *(equality for equality in equalities if equality not in known))
