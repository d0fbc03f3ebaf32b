"""Typing rules: the type of a call given those of its arguments, or a `TypeMismatch` that says what is wrong."""

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
"""The comparisons that need no order."""

TRUNCATION_UNITS = {
    **{name: name for name in ("year", "quarter", "month", "week", "day", "hour", "minute", "second")},
    **{name: name for name in ("millisecond", "microsecond")},
    **{"yyyy": "year", "yy": "year", "mon": "month", "mm": "month", "dd": "day"},
}
"""What DATE_TRUNC cuts to, under all the names that Spark has for it."""

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
        between = Call("equal", (left, right), left.span and left.span.union(right.span))
        for side, side_type in ((left, left_type), (right, right_type)):
            if kind(side_type) == "nested" and not (equality and has_equality(side_type)):
                why = "have no order" if has_equality(side_type) else "cannot be compared"
                raise TypeMismatch(f"{side} is {side_type}, and values of that type {why}", side) from None
        problem = f"cannot compare {left} ({left_type}) with {right} ({right_type})"
        raise TypeMismatch(problem, between, _cast_hint(left, left_type, right, right_type)) from None


def _cast_hint(left: Expression, left_type: pa.DataType, right: Expression, right_type: pa.DataType) -> str | None:
    """Which side to cast: the text one, if there is one, since its cast is the one people mean."""
    if "duration" in (kind(left_type), kind(right_type)):
        return "a length of time is compared with another one: INTERVAL 5 MINUTES"
    if kind(right_type) == "string":
        left, left_type, right, right_type = right, right_type, left, left_type
    target = _SQL_NAMES.get(kind(right_type))
    return None if target is None else f"cast one of them: CAST({left} AS {target})"


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
    """CASE: condition, value, condition, value, .., and the value where none holds."""
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
    """DATE_TRUNC: the unit, written in the text, and a time."""
    unit = call.arguments[0]
    if not isinstance(unit, Literal) or str(unit.value).lower() not in TRUNCATION_UNITS:
        units = ", ".join(dict.fromkeys(TRUNCATION_UNITS.values()))
        raise TypeMismatch(f"DATE_TRUNC does not cut to {unit}", unit, f"units are {units}")
    date_part(Call(call.function, call.arguments[1:], call.span), types[1:])
    return MICROSECONDS if kind(types[1]) != "timestamp" else plain(types[1])


def require(argument: Expression, type_: pa.DataType, wanted: str, who: str) -> None:
    """`argument` must be of a kind, or null."""
    actual = kind(type_)
    if actual in (wanted, "null") or (wanted == "number" and actual in NUMBERS):
        return
    article = "an" if wanted[0] in "aeiou" else "a"
    raise TypeMismatch(f"{who} needs {article} {wanted}, not {type_}", argument, _way_to(wanted, argument, actual))


def _way_to(wanted: str, argument: Expression, actual: str) -> str:
    """How to make something of the kind that is wanted of an argument."""
    if actual in ("nested", "binary", "duration", "time"):
        return f"make a column of type {wanted} of it before the query"
    if wanted == "boolean":
        example = {"string": "= 'yes'", "date": "> DATE '2024-01-31'", "timestamp": "> TIMESTAMP '2024-01-31 12:00:00'"}
        return f"compare it with something: {argument} {example.get(actual, '<> 0')}"
    if wanted == "string":
        return f"cast it: CAST({argument} AS STRING)"
    if actual in ("date", "timestamp"):
        return f"take a number out of it, such as UNIX_SECONDS({argument}) or DAY({argument})"
    return f"cast it: CAST({argument} AS {'DOUBLE' if wanted == 'number' else 'INT'})"


def name(call: Call) -> str:
    return call.function.replace("_", " ").upper() if call.function in INFIX else call.function.upper()
