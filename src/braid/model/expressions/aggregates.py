"""The aggregates of the language, and what type each gives.

An aggregate is a `Call` of one of these names; it is no function of a row, so it is not among `FUNCTIONS`.
"""

from __future__ import annotations

import pyarrow as pa

from braid.model.expressions.expression import Call, Expression, children
from braid.model.expressions.types import INSTANT, WIDEST_DECIMAL, TypeMismatch, is_number, kind, plain

AGGREGATES = ("count", "sum", "avg", "min", "max")
"""COUNT without an argument counts rows. The order of rows makes no difference to any of them."""

WINDOW_START = Call("window_start", ())
WINDOW_END = Call("window_end", ())
"""The bounds of the stretch of event time that a group belongs to."""


def is_aggregate(expression: Expression) -> bool:
    return isinstance(expression, Call) and expression.function in AGGREGATES


def is_window_bound(expression: Expression) -> bool:
    return expression in (WINDOW_START, WINDOW_END)


def type_of_grouped_call(call: Call, types: tuple[pa.DataType, ...]) -> pa.DataType:
    """The type of an aggregate over a value of a type, or of a bound of a window.

    >>> type_of_grouped_call(Call("sum", ()), (pa.decimal128(10, 2),))
    Decimal128Type(decimal128(20, 2))
    """
    if is_window_bound(call):
        return INSTANT
    if call.function == "count":
        return pa.int64()
    name = call.function.upper()
    given = plain(types[0])
    if call.function in ("min", "max"):
        if kind(given) == "nested":
            raise TypeMismatch(f"{name} compares values, and those of type {given} cannot be", call)
        return given
    if not is_number(given):
        raise TypeMismatch(f"{name} takes numbers, not {given}", call)
    if call.function == "avg" or kind(given) == "float":
        return pa.float64()
    if kind(given) == "integer":
        return pa.int64()
    return pa.decimal128(min(given.precision + 10, WIDEST_DECIMAL), given.scale)


def aggregates_of(expression: Expression) -> list[Call]:
    """The aggregates in an expression, left to right, repeated where they are."""
    if isinstance(expression, Call) and is_aggregate(expression):
        return [expression]
    return [found for child in children(expression) for found in aggregates_of(child)]
