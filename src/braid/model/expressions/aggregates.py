"""The aggregates of the language and their result types.

An aggregate is a `Call` of one of these names. It is not in `FUNCTIONS`, because those compute one value per row.
"""

from __future__ import annotations

import pyarrow as pa

from braid.model.expressions.expression import Call, Expression, children
from braid.model.expressions.types import INSTANT, WIDEST_DECIMAL, TypeMismatch, is_number, kind, plain

AGGREGATES = ("count", "sum", "avg", "min", "max")
"""COUNT without an argument counts rows. None of the aggregates depends on the order of rows."""

WINDOW_START = Call("window_start", ())
WINDOW_END = Call("window_end", ())
"""The bounds of the time window of a group."""


def is_aggregate(expression: Expression) -> bool:
    return isinstance(expression, Call) and expression.function in AGGREGATES


def is_window_bound(expression: Expression) -> bool:
    return expression in (WINDOW_START, WINDOW_END)


def type_of_grouped_call(call: Call, types: tuple[pa.DataType, ...]) -> pa.DataType:
    """The type of an aggregate, given the types of its arguments, or of a window bound.

    >>> type_of_grouped_call(Call("sum", ()), (pa.decimal128(10, 2),))
    Decimal128Type(decimal128(20, 2))
    """
    if is_window_bound(call):
        return INSTANT
    if call.function == "count":
        return pa.int64()
    name = call.function.upper()
    operand = plain(types[0])
    if call.function in ("min", "max"):
        if kind(operand) == "nested":
            raise TypeMismatch(f"{name} needs values that can be compared; those of type {operand} cannot", call)
        return operand
    if not is_number(operand):
        raise TypeMismatch(f"{name} takes numbers, not {operand}", call)
    if call.function == "avg" or kind(operand) == "float":
        return pa.float64()
    if kind(operand) == "integer":
        return pa.int64()
    return pa.decimal128(min(operand.precision + 10, WIDEST_DECIMAL), operand.scale)


def aggregates_of(expression: Expression) -> list[Call]:
    """The aggregates in an expression, left to right; one that occurs twice is listed twice."""
    if isinstance(expression, Call) and is_aggregate(expression):
        return [expression]
    return [aggregate for child in children(expression) for aggregate in aggregates_of(child)]
