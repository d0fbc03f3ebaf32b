"""The aggregates of the language and their result types.

An aggregate is a `Call` of one of these names, or a `HostExpression` that is one. It is not in `FUNCTIONS`, because
those compute one value per row.
"""

from __future__ import annotations

import pyarrow as pa

from braid.model.expressions.expression import Call, Expression, HostExpression, children
from braid.model.expressions.types import INSTANT, WIDEST_DECIMAL, TypeMismatch, has_equality, is_number, kind, plain

DISTINCT = " distinct"
"""The end of the name of an aggregate that takes each different value once: `count distinct` is COUNT(DISTINCT x)."""

AGGREGATES = ("count", "sum", "avg", "min", "max", *(name + DISTINCT for name in ("count", "sum", "avg")))
"""COUNT without an argument counts rows. None of the aggregates depends on the order of rows."""

WINDOW_START = Call("window_start", ())
WINDOW_END = Call("window_end", ())
"""The bounds of the time window of a group."""

EVENT_TIME_OPERAND = Call("event_time", ())
"""The event time of a result, as an operand of aggregates that the host computes."""

Aggregate = Call | HostExpression


def is_aggregate(expression: Expression) -> bool:
    if isinstance(expression, HostExpression):
        return expression.aggregate
    return isinstance(expression, Call) and expression.function in AGGREGATES


def is_time(expression: Expression) -> bool:
    """Whether an expression is a bound of the time window, or the event time."""
    return expression in (WINDOW_START, WINDOW_END, EVENT_TIME_OPERAND)


def arguments_of(aggregate: Aggregate) -> tuple[Expression, ...]:
    """What an aggregate reads of each result, without its event time."""
    if isinstance(aggregate, Call):
        return aggregate.arguments
    return tuple(operand for operand in aggregate.operands if operand != EVENT_TIME_OPERAND)


def type_of_grouped_call(call: Call, types: tuple[pa.DataType, ...]) -> pa.DataType:
    """The type of an aggregate, given the types of its arguments, or of a time.

    >>> type_of_grouped_call(Call("sum", ()), (pa.decimal128(10, 2),))
    Decimal128Type(decimal128(20, 2))
    """
    if is_time(call):
        return INSTANT
    function = call.function.removesuffix(DISTINCT)
    name = function.upper()
    if call.function != function and not has_equality(types[0]):
        problem = f"{name}(DISTINCT ..) compares values, and those of type {types[0]} cannot be compared"
        raise TypeMismatch(problem, call)
    if function == "count":
        return pa.int64()
    operand = plain(types[0])
    if function in ("min", "max"):
        if kind(operand) == "nested":
            raise TypeMismatch(f"{name} needs values that can be compared; those of type {operand} cannot", call)
        return operand
    if not is_number(operand):
        raise TypeMismatch(f"{name} takes numbers, not {operand}", call)
    if function == "avg" or kind(operand) == "float":
        return pa.float64()
    if kind(operand) == "integer":
        return pa.int64()
    return pa.decimal128(min(operand.precision + 10, WIDEST_DECIMAL), operand.scale)


def aggregates_of(expression: Expression) -> list[Aggregate]:
    """The aggregates in an expression, left to right; one that occurs twice is listed twice."""
    if isinstance(expression, Aggregate) and is_aggregate(expression):
        return [expression]
    return [aggregate for child in children(expression) for aggregate in aggregates_of(child)]
