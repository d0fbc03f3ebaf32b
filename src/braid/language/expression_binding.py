"""Binding expressions: finds the stream of each column, and the type of each expression."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TypeAlias

import pyarrow as pa

from braid.errors import QueryError, Span, did_you_mean
from braid.language.host_columns import HostColumns, ReadsResults
from braid.language.literals import convert_text
from braid.language.resolving import match_name
from braid.language.source_binding import no_single_column
from braid.model.expressions.aggregates import is_aggregate, is_time, type_of_grouped_call
from braid.model.expressions.expression import Cast, Column, Expression, HostExpression, Literal, children
from braid.model.expressions.types import NUMBERS, TypeMismatch, kind
from braid.model.expressions.typing import type_of, type_of_call

Typed: TypeAlias = tuple[Expression, pa.DataType]
"""A bound expression and its type."""

_COMPARISONS = frozenset({"equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "same", "in"})

_WRITTEN_AS_TEXT = NUMBERS | {"timestamp", "date", "boolean"}
"""The kinds of value that may be written as a quoted text when they are compared."""


class ExpressionBinder:
    """Binds expressions of one query text.

    `schemas` are those of the streams by alias. A column without a stream is looked for in the aliases of each of
    `scopes` in turn, until one scope has it. What the host computes becomes a column of `host`, unless the expressions
    are `results`, which the host computes after the join. `nullable` are the streams that may have rows of nulls. With
    `leaves_to_host`, what reads several streams, or one of those, raises `ReadsResults`.
    """

    def __init__(
        self,
        text: str,
        schemas: Mapping[str, pa.Schema],
        scopes: tuple[tuple[str, ...], ...],
        host: HostColumns | None = None,
        *,
        results: bool = False,
        nullable: Collection[str] = (),
        leaves_to_host: bool = False,
    ) -> None:
        self._text = text
        self._schemas = schemas
        self._scopes = scopes
        self._host = host
        self._results = results
        self._nullable = nullable
        self._leaves_to_host = leaves_to_host

    def bind(self, expression: Expression) -> Typed:
        """The expression with its columns resolved and its constants converted to the types they are compared with."""
        try:
            return self._bind(expression)
        except TypeMismatch as problem:
            if isinstance(problem, ReadsResults) and self._leaves_to_host:
                raise
            culprit = problem.expression if problem.expression is not None else expression
            span = span_of_expression(culprit) or span_of_expression(expression)
            raise QueryError(problem.message, self._text, span, problem.hint) from None

    def _bind(self, expression: Expression) -> Typed:
        if isinstance(expression, Column):
            computed_type = None if self._host is None else self._host.type_of(expression)
            if computed_type is not None:
                return expression, computed_type
            column = self._column(expression)
            assert column.source is not None
            return column, self._schemas[column.source].field(column.name).type
        if isinstance(expression, Literal):
            return expression, expression.type
        if isinstance(expression, Cast):
            operand, type_ = self._bind(expression.operand)
            # The type of a cast depends on the type of its operand only, so a null stands in for the operand.
            typed_null = Literal(None, type_, span_of_expression(operand))
            cast = replace(expression, operand=operand)
            return cast, type_of(replace(cast, operand=typed_null), _no_columns)
        if isinstance(expression, HostExpression):
            return self._host_expression(expression)
        arguments = [self._bind(argument) for argument in expression.arguments]
        if expression.function in _COMPARISONS:
            arguments = _converted(arguments)
        call = replace(expression, arguments=tuple(argument for argument, _ in arguments))
        types = tuple(type_ for _, type_ in arguments)
        if is_aggregate(expression) or is_time(expression):
            return call, type_of_grouped_call(call, types)
        return call, type_of_call(call, types)

    def _host_expression(self, expression: HostExpression) -> Typed:
        if self._host is None:
            raise TypeMismatch(f"no host computes {expression}", expression, "run the query on Spark: braid.Session")
        operands = [self._bind(operand) for operand in expression.operands]
        bound = replace(expression, operands=tuple(operand for operand, _ in operands))
        typed = self._host.typed(bound, [type_ for _, type_ in operands])
        return typed if self._results else self._host.column(typed, self._nullable), typed.type

    def _column(self, column: Column) -> Column:
        """The column with its stream, and with its name as the schema spells it."""
        if column.source is not None:
            names = self._schemas[column.source].names
            matches = match_name(column.name, names)
            if len(matches) != 1:
                raise no_single_column(column.name, column.source, matches, names, self._text, column.span)
            return replace(column, name=matches[0])
        candidates: list[tuple[str, str]] = []
        for scope in self._scopes:
            candidates = self._columns_called(column.name, scope)
            if candidates:
                break
        if len(candidates) == 1:
            alias, name = candidates[0]
            return Column(alias, name, column.span)
        if not candidates:
            names = [name for scope in self._scopes for alias in scope for name in self._schemas[alias].names]
            problem = f"no stream of this query has a column '{column.name}'"
            raise QueryError(problem, self._text, column.span, did_you_mean(column.name, names))
        raise QueryError(
            f"column '{column.name}' is in several streams: {', '.join(alias for alias, _ in candidates)}",
            self._text,
            column.span,
            f"say which: {' or '.join(f'{alias}.{name}' for alias, name in candidates)}",
        )

    def _columns_called(self, name: str, scope: tuple[str, ...]) -> list[tuple[str, str]]:
        """The columns of a scope, as alias and name, that a name may mean; an exact spelling in any stream wins."""
        columns = [(alias, column) for alias in scope for column in self._schemas[alias].names]
        matches = match_name(name, [column for _, column in columns])
        return [(alias, column) for alias, column in columns if column in matches]


def span_of_expression(expression: Expression) -> Span | None:
    """The span of an expression, or of all its operands if it has none itself."""
    if expression.span is not None:
        return expression.span
    spans = [span for span in map(span_of_expression, children(expression)) if span is not None]
    return Span(min(span.start for span in spans), max(span.end for span in spans)) if spans else None


def _converted(operands: list[Typed]) -> list[Typed]:
    """The operands of a comparison, with quoted texts converted to the number, time or boolean beside them."""
    target = next((type_ for _, type_ in operands if kind(type_) in _WRITTEN_AS_TEXT), None)
    if target is None:
        return operands
    converted: list[Typed] = []
    for expression, type_ in operands:
        if not (isinstance(expression, Literal) and isinstance(expression.value, str)):
            converted.append((expression, type_))
            continue
        literal = convert_text(expression, target)
        if literal is None:
            problem = f"{expression} is compared with {_with_article(kind(target))} but is not one"
            raise TypeMismatch(problem, expression, _example(target))
        converted.append((literal, literal.type))
    return converted


def _no_columns(column: Column) -> pa.DataType:
    raise AssertionError(f"{column} is not bound")


def _with_article(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def _example(type_: pa.DataType) -> str:
    examples = {
        "timestamp": "write it as '2024-01-31 12:00:00'",
        "date": "write it as '2024-01-31', or TIMESTAMP '2024-01-31 12:00:00' for a time of the day",
        "boolean": "write TRUE or FALSE",
    }
    return examples.get(kind(type_), "write a number, without quotes")
