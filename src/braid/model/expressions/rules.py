"""Typing rules: the type of a call, given the types of its arguments, or a `TypeMismatch` with the problem."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from braid.model.expressions.expression import INFIX, Call, Expression, Literal
from braid.model.expressions.types import (
    MICROSECONDS,
    NUMBERS,
    TypeMismatch,
    common_type,
    comparison_type,
    equality_type,
    has_equality,
    kind,
    plain,
)

Types = tuple[pa.DataType, ...]
Rule = Callable[[Call, Types], pa.DataType]

EQUALITIES = frozenset({"equal", "not_equal", "same"})
"""The comparisons that need no order, only equality."""

TRUNCATION_UNITS = {
    **{name: name for name in ("year", "quarter", "month", "week", "day", "hour", "minute", "second")},
    **{name: name for name in ("millisecond", "microsecond")},
    **{"yyyy": "year", "yy": "year", "mon": "month", "mm": "month", "dd": "day"},
}
"""The units of DATE_TRUNC, by every name that Spark accepts."""

_SQL_NAMES = {
    "boolean": "BOOLEAN",
    "integer": "BIGINT",
    "decimal": "DECIMAL(38, 18)",
    "float": "DOUBLE",
    "string": "STRING",
    "binary": "BINARY",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}
"""The SQL type to suggest in a cast to each kind of type."""


def comparison(call: Call, types: Types) -> pa.DataType:
    left, right = call.arguments
    check_comparable(left, types[0], right, types[1], equality=call.function in EQUALITIES)
    return pa.bool_()


def check_comparable(
    left: Expression, left_type: pa.DataType, right: Expression, right_type: pa.DataType, *, equality: bool = False
) -> None:
    try:
        (equality_type if equality else comparison_type)(left_type, right_type)
    except TypeMismatch:
        for side, side_type in ((left, left_type), (right, right_type)):
            if kind(side_type) == "nested" and not (equality and has_equality(side_type)):
                reason = "have no order" if has_equality(side_type) else "cannot be compared"
                raise TypeMismatch(f"{side} is {side_type}, and values of that type {reason}", side) from None
        # The error marks both sides in the query text.
        both_sides = Call("equal", (left, right), left.span and left.span.union(right.span))
        problem = f"cannot compare {left} ({left_type}) with {right} ({right_type})"
        raise TypeMismatch(problem, both_sides, _cast_hint(left, left_type, right, right_type)) from None


def _cast_hint(left: Expression, left_type: pa.DataType, right: Expression, right_type: pa.DataType) -> str | None:
    """A cast that makes two sides comparable: of the string, if there is one, else of the left side."""
    if "duration" in (kind(left_type), kind(right_type)):
        return "compare a duration with another one, such as INTERVAL 5 MINUTES"
    operand, other_type = (right, left_type) if kind(right_type) == "string" else (left, right_type)
    target = _SQL_NAMES.get(kind(other_type))
    return None if target is None else f"cast one of them: CAST({operand} AS {target})"


def truth(call: Call, types: Types) -> pa.DataType:
    for argument, type_ in zip(call.arguments, types, strict=True):
        require(argument, type_, "boolean", name(call))
    return pa.bool_()


def nulls(call: Call, types: Types) -> pa.DataType:
    return pa.bool_()


def membership(call: Call, types: Types) -> pa.DataType:
    for argument, type_ in zip(call.arguments[1:], types[1:], strict=True):
        check_comparable(call.arguments[0], types[0], argument, type_, equality=True)
    common_type(types)
    return pa.bool_()


def branches(call: Call, types: Types) -> pa.DataType:
    """CASE: condition, value, condition, value, .., and the value of ELSE."""
    for position in range(0, len(types) - 1, 2):
        require(call.arguments[position], types[position], "boolean", "a condition of CASE")
    return common_type((*types[1::2], types[-1]))


def alternatives(call: Call, types: Types) -> pa.DataType:
    return common_type(types)


def extremes(call: Call, types: Types) -> pa.DataType:
    for argument, type_ in zip(call.arguments, types, strict=True):
        check_comparable(call.arguments[0], types[0], argument, type_)
    return common_type(types)


def date_part(call: Call, types: Types) -> pa.DataType:
    if kind(types[0]) not in ("date", "timestamp", "null"):
        raise TypeMismatch(
            f"{name(call)} needs a date or timestamp, not {types[0]}",
            call.arguments[0],
            f"cast it: CAST({call.arguments[0]} AS TIMESTAMP)" if kind(types[0]) == "string" else None,
        )
    return pa.int32()


def second_with_fraction(call: Call, types: Types) -> pa.DataType:
    date_part(call, types)
    return pa.decimal128(8, 6)


def epoch(call: Call, types: Types) -> pa.DataType:
    date_part(call, types)
    return pa.int64()


def truncation(call: Call, types: Types) -> pa.DataType:
    """DATE_TRUNC: the unit, a constant, and a time."""
    unit = call.arguments[0]
    if not isinstance(unit, Literal) or str(unit.value).lower() not in TRUNCATION_UNITS:
        units = ", ".join(dict.fromkeys(TRUNCATION_UNITS.values()))
        raise TypeMismatch(f"DATE_TRUNC cannot truncate to {unit}", unit, f"use one of {units}")
    date_part(Call(call.function, call.arguments[1:], call.span), types[1:])
    return MICROSECONDS if kind(types[1]) != "timestamp" else plain(types[1])


def require(argument: Expression, type_: pa.DataType, required: str, function: str) -> None:
    """An argument of a function must be of the required kind, or null; "number" stands for all kinds of numbers."""
    actual = kind(type_)
    if actual in (required, "null") or (required == "number" and actual in NUMBERS):
        return
    article = "an" if required[0] in "aeiou" else "a"
    problem = f"{function} needs {article} {required}, not {type_}"
    raise TypeMismatch(problem, argument, _conversion_hint(required, argument, actual))


def _conversion_hint(required: str, argument: Expression, actual: str) -> str:
    """How to convert an argument to the required kind."""
    if actual in ("nested", "binary", "duration", "time"):
        return f"convert it to a column of type {required} before the query"
    if required == "boolean":
        examples = {
            "string": "= 'yes'",
            "date": "> DATE '2024-01-31'",
            "timestamp": "> TIMESTAMP '2024-01-31 12:00:00'",
        }
        return f"compare it with something: {argument} {examples.get(actual, '<> 0')}"
    if required == "string":
        return f"cast it: CAST({argument} AS STRING)"
    if actual in ("date", "timestamp"):
        return f"extract a number from it, for example UNIX_SECONDS({argument}) or DAY({argument})"
    return f"cast it: CAST({argument} AS {'DOUBLE' if required == 'number' else 'INT'})"


def name(call: Call) -> str:
    """The name of a function in error texts."""
    return call.function.replace("_", " ").upper() if call.function in INFIX else call.function.upper()
