"""Binding expressions that the host computes: those of conditions become columns of their stream.

The host computes such a column where the stream enters the query, before any join. So it must read one stream only. And
a fixed join that adds rows with nulls adds a null to the column, too, which may differ from what the expression gives
for nulls; so the conditions after such a join cannot have one. Conditions that cannot have such a column are left to
the host, after all joins (`ReadsResults`), where that means the same.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from braid.language.host_types import HostTypes
from braid.model.expressions.aggregates import EVENT_TIME_OPERAND
from braid.model.expressions.expression import Column, Expression, HostExpression, sources_of
from braid.model.expressions.types import TypeMismatch
from braid.model.output import Output
from braid.model.source import Source

AFTERWARDS = "select it, and filter the results of the query in a further step"


class ReadsResults(TypeMismatch):
    """An expression that cannot be a column of one stream. The host can compute it from the results of the join."""


class HostColumns:
    """The columns that the host computes for the conditions of one query; `default` is the stream for constants."""

    def __init__(self, types: HostTypes, default: str) -> None:
        self._types = types
        self._default = default
        self._columns: dict[str, dict[str, Output]] = {}

    def typed(self, expression: HostExpression, types: Sequence[pa.DataType]) -> HostExpression:
        """A bound expression with its type, given the types of its operands."""
        return replace(expression, type=self._types.type_of(expression, types))

    def column(self, expression: HostExpression, nullable: Collection[str]) -> Column:
        """The column for an expression with a type; `nullable` are the streams that may have rows of nulls here."""
        if EVENT_TIME_OPERAND in expression.operands:
            raise TypeMismatch(
                "CURRENT_TIMESTAMP is the event time of a result, which is not known in conditions",
                expression,
                "compare the event-time columns of the streams",
            )
        sources = sorted(sources_of(expression))
        if len(sources) > 1:
            raise ReadsResults(
                f"{expression} is computed by the host, which cannot compare streams {' and '.join(sources)}",
                expression,
                f"compare expressions of one stream each; or {AFTERWARDS}",
            )
        alias = sources[0] if sources else self._default
        if alias in nullable:
            raise ReadsResults(
                f"{expression} is computed by the host, before the join that gives nulls for '{alias}'",
                expression,
                f"write it in the ON of that join; or {AFTERWARDS}",
            )
        name = expression.sql(_column_name)
        self._columns.setdefault(alias, {})[name] = Output(name, expression)
        return Column(alias, name, expression.span)

    def forget(self, columns: Mapping[str, Mapping[str, Output]]) -> None:
        """Go back to the columns that `known` returned before."""
        self._columns = {alias: dict(outputs) for alias, outputs in columns.items()}

    @property
    def known(self) -> Mapping[str, Mapping[str, Output]]:
        """The columns so far, by alias and name."""
        return {alias: dict(outputs) for alias, outputs in self._columns.items()}

    def type_of(self, column: Column) -> pa.DataType | None:
        """The type of a column that `column` has returned; None for any other column."""
        output = self._columns.get(column.source or "", {}).get(column.name)
        return output.expression.type if output is not None and isinstance(output.expression, HostExpression) else None

    def of(self, source: Source) -> Source:
        """A bound stream of the query with its computed columns."""
        columns = tuple(self._columns.get(source.alias, {}).values())
        if not columns:
            return source
        schema = source.declared.schema
        for output in columns:
            assert isinstance(output.expression, HostExpression)
            schema = schema.append(pa.field(output.name, output.expression.type))
        return replace(source, declaration=replace(source.declared, schema=schema), computed=columns)


def _column_name(operand: Expression) -> str:
    return operand.name if isinstance(operand, Column) else str(operand)
