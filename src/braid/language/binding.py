"""Binding a query to the streams it will run on: every name resolved, every type checked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pyarrow as pa

from braid.errors import QueryError, Span, StreamError, did_you_mean
from braid.language.literals import convert_text
from braid.language.resolving import match_name
from braid.model.expressions.aggregates import is_aggregate, is_window_bound, type_of_grouped_call
from braid.model.expressions.expression import Cast, Column, Expression, Literal, children
from braid.model.expressions.types import NUMBERS, TypeMismatch, has_equality, has_union, kind
from braid.model.expressions.typing import type_of, type_of_call
from braid.model.grouping import Grouping
from braid.model.predicate import Predicate
from braid.model.query import Exclusion, Output, Query, Source, Star
from braid.model.stream import Stream
from braid.model.window import Rows

_COMPARISONS = frozenset({"equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "same", "in"})
_WRITTEN_AS_TEXT = NUMBERS | {"timestamp", "date", "boolean"}
"""Kinds of value that a text in the query may stand for when it is compared with one."""


def bind(query: Query, streams: Mapping[str, Stream]) -> Query:
    """The same query with its streams declared, its columns and stars resolved and its types checked.

    `streams` maps the names of FROM to their declarations. A `QueryError` says what does not fit, and where.
    """
    if not isinstance(streams, Mapping):
        raise StreamError(f"streams maps names to what they declare; {type(streams).__name__} does not")
    for name in streams:
        if not isinstance(name, str):
            raise StreamError(f"the name of a stream is a text, not {name!r}")
    return _Binder(query, streams).bind()


class _Binder:
    def __init__(self, query: Query, streams: Mapping[str, Stream]) -> None:
        self._query = query
        self._text = query.text
        self._sources = tuple(self._declare(source, streams) for source in query.sources)
        self._excluded = tuple(self._declare(exclusion.source, streams) for exclusion in query.exclusions)
        self._schemas: dict[str, pa.Schema] = {
            source.alias: source.declared.schema for source in (*self._sources, *self._excluded)
        }
        self._scopes: tuple[tuple[str, ...], ...] = (query.aliases,)
        """Where a column without a stream is looked for, nearest first."""

    def bind(self) -> Query:
        predicates = tuple(self._predicate(predicate) for predicate in self._query.predicates)
        exclusions = tuple(map(self._exclusion, self._query.exclusions, self._excluded))
        if self._query.grouping is not None:
            grouping = self._grouping(self._query.grouping)
            return Query(self._text, self._sources, grouping.inputs, predicates, grouping, exclusions)
        outputs = tuple(bound for output in self._query.outputs for bound in self._outputs(output))
        return Query(self._text, self._sources, outputs, predicates, None, exclusions)

    def _exclusion(self, written: Exclusion, source: Source) -> Exclusion:
        outer = self._scopes
        self._scopes = ((source.alias,), *outer)
        try:
            return Exclusion(source, tuple(map(self._predicate, written.predicates)))
        finally:
            self._scopes = outer

    def _grouping(self, written: Grouping) -> Grouping:
        outputs = tuple(bound for output in written.outputs for bound in self._outputs(output))
        having = None if written.having is None else self._condition(written.having)
        grouping = Grouping(outputs, tuple(map(self._key, written.keys)), written.window, having)
        for expression in [output.expression for output in outputs] + ([] if having is None else [having]):
            for column in grouping.ungrouped(expression):
                raise QueryError(
                    f"'{column}' is neither a key of the groups nor aggregated",
                    self._text,
                    column.span,
                    f"add it to GROUP BY, or aggregate it: MAX({column})",
                )
        return grouping

    def _key(self, key: Expression) -> Expression:
        bound, type_ = self._expression(key)
        if kind(type_) == "nested":
            problem = f"results cannot be grouped by {bound}, which is {type_}"
            raise QueryError(problem, self._text, _span(bound), "group by a column of a simple type")
        return bound

    def _declare(self, source: Source, streams: Mapping[str, Stream]) -> Source:
        matches = match_name(source.stream, streams)
        if not matches:
            raise QueryError(
                f"there is no stream '{source.stream}'",
                self._text,
                self._word_place(source.stream, source.span),
                did_you_mean(source.stream, streams),
            )
        if len(matches) > 1:
            raise QueryError(
                f"stream '{source.stream}' could be {' or '.join(matches)}",
                self._text,
                source.span,
                "write it exactly",
            )
        declaration = streams[matches[0]]
        window = source.window
        if window.counts_rows:
            self._check_ordered(source, declaration)
        if isinstance(window, Rows) and window.partition_by:
            names = tuple(self._partition_column(name, source, declaration) for name in window.partition_by)
            window = Rows(window.count, names)
        return replace(source, window=window, declaration=declaration)

    def _check_ordered(self, source: Source, declaration: Stream) -> None:
        """Rows of the same event time are counted in the order of their columns, so each must have one."""
        for column in declaration.schema:
            if has_union(column.type):
                raise QueryError(
                    f"stream '{source.stream}' cannot be counted by rows: its column '{column.name}' is a union, "
                    "which has no order",
                    self._text,
                    source.span,
                    "leave the column out of the stream",
                )

    def _partition_column(self, name: str, source: Source, declaration: Stream) -> str:
        matches = match_name(name, declaration.schema.names)
        place = self._word_place(name, source.span, after="by")
        if len(matches) != 1:
            raise self._no_single_column(name, source.alias, matches, declaration.schema.names, place)
        type_ = declaration.schema.field(matches[0]).type
        if not has_equality(type_):
            problem = f"rows cannot be partitioned by '{name}', which is {type_}"
            raise QueryError(problem, self._text, place, "partition by a column of a simple type")
        return matches[0]

    def _outputs(self, output: Output | Star) -> Iterator[Output]:
        if isinstance(output, Star):
            for source in self._sources:
                if output.source in (None, source.alias):
                    for name in self._schemas[source.alias].names:
                        yield Output(name, Column(source.alias, name, output.span))
        else:
            yield Output(output.name, self._expression(output.expression)[0])

    def _predicate(self, predicate: Predicate) -> Predicate:
        return Predicate(self._condition(predicate.expression))

    def _condition(self, condition: Expression) -> Expression:
        expression, type_ = self._expression(condition)
        if kind(type_) not in ("boolean", "null"):
            hint = f"compare it with something: {expression} = .." if kind(type_) != "nested" else None
            raise QueryError(
                f"a condition is true or false, but {expression} is {type_}",
                self._text,
                _span(expression),
                hint,
            )
        return Cast(expression, pa.bool_(), _span(expression)) if pa.types.is_null(type_) else expression

    def _expression(self, expression: Expression) -> tuple[Expression, pa.DataType]:
        """An expression with its columns resolved and its constants typed as they are compared; its type."""
        try:
            return self._bound(expression)
        except TypeMismatch as problem:
            culprit = problem.expression if problem.expression is not None else expression
            raise QueryError(problem.message, self._text, _span(culprit) or _span(expression), problem.hint) from None

    def _bound(self, expression: Expression) -> tuple[Expression, pa.DataType]:
        if isinstance(expression, Column):
            column = self._column(expression)
            assert column.source is not None
            return column, self._schemas[column.source].field(column.name).type
        if isinstance(expression, Literal):
            return expression, expression.type
        if isinstance(expression, Cast):
            operand, type_ = self._bound(expression.operand)
            cast = replace(expression, operand=operand)
            return cast, type_of(replace(cast, operand=Literal(None, type_, _span(operand))), _no_columns)
        parts = [self._bound(argument) for argument in expression.arguments]
        if is_aggregate(expression) or is_window_bound(expression):
            call = replace(expression, arguments=tuple(part for part, _ in parts))
            return call, type_of_grouped_call(call, tuple(type_ for _, type_ in parts))
        if expression.function in _COMPARISONS:
            parts = self._compared(parts)
        call = replace(expression, arguments=tuple(part for part, _ in parts))
        return call, type_of_call(call, tuple(type_ for _, type_ in parts))

    def _compared(self, parts: list[tuple[Expression, pa.DataType]]) -> list[tuple[Expression, pa.DataType]]:
        """A text that is compared with a number, a time or a truth value is read as one."""
        target = next((type_ for _, type_ in parts if kind(type_) in _WRITTEN_AS_TEXT), None)
        if target is None:
            return parts
        converted: list[tuple[Expression, pa.DataType]] = []
        for expression, type_ in parts:
            if isinstance(expression, Literal) and isinstance(expression.value, str):
                literal = convert_text(expression, target)
                if literal is None:
                    raise TypeMismatch(
                        f"{expression} is compared with {_article(kind(target))} and is none",
                        expression,
                        _example(target),
                    )
                converted.append((literal, literal.type))
            else:
                converted.append((expression, type_))
        return converted

    def _column(self, column: Column) -> Column:
        if column.source is not None:
            names = self._schemas[column.source].names
            matches = match_name(column.name, names)
            if len(matches) != 1:
                raise self._no_single_column(column.name, column.source, matches, names, column.span)
            return replace(column, name=matches[0])
        scopes = [[(alias, name) for alias in scope for name in self._schemas[alias].names] for scope in self._scopes]
        owned = [known for scope in scopes for known in scope]
        found = next((found for found in (_called(column.name, scope) for scope in scopes) if found), [])
        if len(found) == 1:
            return Column(*found[0], column.span)
        if not found:
            raise QueryError(
                f"no stream of this query has a column '{column.name}'",
                self._text,
                column.span,
                did_you_mean(column.name, [name for _, name in owned]),
            )
        raise QueryError(
            f"column '{column.name}' is in several streams: {', '.join(alias for alias, _ in found)}",
            self._text,
            column.span,
            f"say which: {' or '.join(f'{alias}.{name}' for alias, name in found)}",
        )

    def _no_single_column(
        self, name: str, alias: str, matches: list[str], names: list[str], span: Span | None
    ) -> QueryError:
        if matches:
            return QueryError(f"column '{name}' could be {' or '.join(matches)}", self._text, span, "write it exactly")
        return QueryError(f"stream '{alias}' has no column '{name}'", self._text, span, did_you_mean(name, names))

    def _word_place(self, word: str, span: Span | None, after: str = "") -> Span | None:
        """Where in the FROM entry of a source a word stands."""
        if span is None:
            return None
        stretch = self._text[span.start : span.end]
        start = max(0, stretch.lower().find(after)) if after else 0
        match = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)").search(stretch, start)
        return span if match is None else Span(span.start + match.start(), span.start + match.end())


def _called(wanted: str, known: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Which columns a name may mean: an exact spelling goes before any other."""
    names = match_name(wanted, [name for _, name in known])
    return [(alias, name) for alias, name in known if name in names]


def _span(expression: Expression) -> Span | None:
    """Where an expression stands: its own place, else from the first to the last of its parts."""
    if expression.span is not None:
        return expression.span
    spans = [span for span in map(_span, children(expression)) if span is not None]
    return Span(min(span.start for span in spans), max(span.end for span in spans)) if spans else None


def _no_columns(column: Column) -> pa.DataType:
    raise AssertionError(f"{column} is not bound")


def _article(name: str) -> str:
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


def _example(type_: pa.DataType) -> str:
    examples = {
        "timestamp": "write it as '2024-01-31 12:00:00'",
        "date": "write it as '2024-01-31', or TIMESTAMP '2024-01-31 12:00:00' for a time of the day",
        "boolean": "write TRUE or FALSE",
    }
    return examples.get(kind(type_), "write a number, without quotes")
