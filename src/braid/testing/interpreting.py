"""What the programs of a deployment yield for a case, by the interpreter, where it knows what the query means.

It knows windows of time that do not slide, and comparisons of columns and constants that Python compares as Spark does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.types as types

from braid.model.expressions.expression import Call, Column, Expression, Literal
from braid.model.output import Output
from braid.model.query import Query, Source
from braid.planning.deployment import Deployment
from braid.testing.comparison import assert_same_rows
from braid.testing.interpreter import COMPARISONS, Interpreter, Row
from braid.testing.relation import microseconds

SAME_FOR_BOTH = (types.is_integer, types.is_string, types.is_boolean, types.is_date, types.is_time, types.is_decimal)
"""The types whose values Python compares as Spark does."""


def is_interpretable(query: Query) -> bool:
    """Whether the interpreter knows what a query means."""
    if not query.ends_at_joins or query.distinct or query.grouping is not None:
        return False
    keys = (key for tied in query.graph.classes for _, key in tied.members)
    selected = (output.expression for output in query.outputs if isinstance(output, Output))
    return (
        any(_is_comparable(query, expression) for expression in selected)
        and all(map(_is_timed, query.sources))
        and all(_compares(query, predicate.expression) for predicate in query.predicates)
        and all(isinstance(key, Column) for key in keys)
    )


def check_programs(
    deployment: Deployment, tables: Mapping[str, pa.Table], time: Mapping[str, str], expected: pa.Table
) -> None:
    """Assert that the programs of a deployment yield the expected results.

    `tables` are the rows in time, by stream. Columns that the query computes are not compared.
    """
    query = deployment.query
    streams = {name: _rows(table, time[name]) for name, table in tables.items()}
    combinations = Interpreter(deployment, streams).emitted()
    interpreted, wanted = {}, {}
    for position, output in enumerate(query.outputs):
        if isinstance(output, Output) and _is_comparable(query, output.expression):
            values = [row.value(output.expression) for row in combinations]
            interpreted[str(position)] = pa.array(values, _type(query, output.expression))
            wanted[str(position)] = expected.column(position)
    assert_same_rows(pa.table(interpreted), pa.table(wanted), types=False)


def _is_timed(source: Source) -> bool:
    return source.window.lifetime is not None and source.window.slide is None


def _compares(query: Query, expression: Expression) -> bool:
    """Whether an expression is a comparison of values of the same type."""
    if not isinstance(expression, Call) or expression.function not in COMPARISONS:
        return False
    sides = expression.arguments
    columns = [side for side in sides if isinstance(side, Column)]
    known = all(isinstance(side, Literal) or _is_comparable(query, side) for side in sides)
    if not columns or not known:
        return False
    kinds = {_type(query, column) for column in columns}
    constants = [side.value for side in sides if isinstance(side, Literal)]
    return len(kinds) == 1 and all(_belongs(value, next(iter(kinds))) for value in constants)


def _belongs(value: Any, kind: pa.DataType) -> bool:
    """Whether a constant is of the type of the column that it is compared with."""
    if types.is_integer(kind):
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, str) and types.is_string(kind)


def _is_comparable(query: Query, expression: Expression) -> bool:
    """Whether an expression is a column whose values are the same for Python and for Spark."""
    if not isinstance(expression, Column):
        return False
    kind = _type(query, expression)
    return any(is_kind(kind) for is_kind in SAME_FOR_BOTH)


def _type(query: Query, column: Expression) -> pa.DataType:
    assert isinstance(column, Column)
    return query.source(column.source or "").declared.schema.field(column.name).type


def _rows(table: pa.Table, time: str) -> list[Row]:
    """The rows of a stream that have an event time, with that time in microseconds as `ts`."""
    times = microseconds(table.column(time)).to_pylist()
    rows = ({**row, "ts": moment} for row, moment in zip(table.to_pylist(), times, strict=True))
    return [row for row in rows if row["ts"] is not None]
