"""Typing rules of arithmetic and of numeric functions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal

import pyarrow as pa

from braid.model.expressions.expression import INFIX, Call, Expression, Literal
from braid.model.expressions.rules import Types, name, require
from braid.model.expressions.types import (
    DURATION,
    MICROSECONDS,
    NUMBERS,
    TypeMismatch,
    as_decimal,
    bounded_decimal,
    comparison_type,
    is_number,
    kind,
    plain,
)


def addition(call: Call, types: Types) -> pa.DataType:
    kinds = (kind(types[0]), kind(types[1]))
    if kinds == ("duration", "duration"):
        return DURATION
    for time, step in ((0, 1), (1, 0)):  # the positions of a time and of what is added to it
        if kinds[time] == "timestamp" and kinds[step] == "duration":
            return plain(types[time])
        if kinds[time] == "date" and kinds[step] in ("duration", "integer"):
            return _shifted_date(kinds[step], call.arguments[step])
    return _number(call, types, _sum_decimal)


def subtraction(call: Call, types: Types) -> pa.DataType:
    left, right = kind(types[0]), kind(types[1])
    if {left, right} <= {"timestamp", "date"} or (left, right) == ("duration", "duration"):
        return DURATION
    if (left, right) == ("timestamp", "duration"):
        return plain(types[0])
    if left == "date" and right in ("duration", "integer"):
        return _shifted_date(right, call.arguments[1])
    return _number(call, types, _sum_decimal)


def _shifted_date(step_kind: str, step: Expression) -> pa.DataType:
    """A date plus an integer, or plus a constant number of days, is a date; plus another duration, a timestamp."""
    value = step.value if isinstance(step, Literal) else None
    whole_days = isinstance(value, timedelta) and value % timedelta(days=1) == timedelta(0)
    return pa.date32() if step_kind == "integer" or whole_days else MICROSECONDS


def multiplication(call: Call, types: Types) -> pa.DataType:
    kinds = {kind(type_) for type_ in types}
    if "duration" in kinds and kinds & NUMBERS:
        return DURATION
    return _number(
        call,
        types,
        lambda left, right: bounded_decimal(left.precision + right.precision + 1, left.scale + right.scale),
    )


def division(call: Call, types: Types) -> pa.DataType:
    if kind(types[0]) == "duration" and is_number(types[1]):
        return DURATION
    _number(call, types, _sum_decimal)
    return pa.float64()


def integer_division(call: Call, types: Types) -> pa.DataType:
    """DIV takes integers and decimals; floats are refused, as in Spark."""
    _number(call, types, _sum_decimal)
    if "float" in map(kind, types):
        left, right = call.arguments
        hint = f"write FLOOR({left} / {right}), or cast to BIGINT or DECIMAL first"
        raise TypeMismatch(f"'DIV' does not work on {types[0]} and {types[1]}", call, hint)
    return pa.int64()


def remainder(call: Call, types: Types) -> pa.DataType:
    return _number(call, types, _remainder_decimal)


def _remainder_decimal(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    scale = max(left.scale, right.scale)
    return bounded_decimal(min(left.precision - left.scale, right.precision - right.scale) + scale, scale)


def _sum_decimal(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    scale = max(left.scale, right.scale)
    return bounded_decimal(max(left.precision - left.scale, right.precision - right.scale) + scale + 1, scale)


def _number(call: Call, types: Types, of_decimals: Callable[[pa.DataType, pa.DataType], pa.DataType]) -> pa.DataType:
    """The type of arithmetic on numbers: the wider of the two types; for decimals, what `of_decimals` returns."""
    for argument, type_ in zip(call.arguments, types, strict=True):
        if kind(type_) not in NUMBERS | {"null"}:
            raise _not_a_number(call, argument, type_, types)
    common = comparison_type(*types)
    if pa.types.is_null(common):
        return pa.int32()
    if not pa.types.is_decimal(common):
        return common
    return of_decimals(*operand_decimals(call, types))


def operand_decimals(call: Call, types: Types) -> tuple[pa.DataType, pa.DataType]:
    """The decimal types in which the two operands of a call are computed."""
    left, right = call.arguments
    return _operand_decimal(left, types[0], types[1]), _operand_decimal(right, types[1], types[0])


def _operand_decimal(argument: Expression, type_: pa.DataType, other_type: pa.DataType) -> pa.DataType:
    """As in Spark, an integer literal is a decimal with as many digits as it has. NULL has the other operand's type."""
    if isinstance(argument, Literal) and isinstance(argument.value, int):
        return pa.decimal128(len(str(abs(argument.value))), 0)
    return as_decimal(other_type if kind(type_) == "null" else type_)


def _not_a_number(call: Call, argument: Expression, type_: pa.DataType, types: Types) -> TypeMismatch:
    operator = INFIX.get(call.function, call.function.upper())
    kinds = {kind(other) for other in types}
    hint = None
    if "string" in kinds and kinds & {"timestamp", "date"}:
        hint = "write a time as TIMESTAMP '2024-01-01 00:00:00' and a duration as INTERVAL 5 MINUTES"
    elif "timestamp" in kinds and kinds & NUMBERS:
        hint = "write a duration as INTERVAL 5 MINUTES"
    elif kind(type_) == "string":
        hint = f"cast it: CAST({argument} AS DOUBLE)"
        if call.function == "add":
            hint += ", or concatenate strings with ||"
    operand_types = " and ".join(str(other) for other in types)
    return TypeMismatch(f"'{operator}' does not work on {operand_types}", call, hint)


def negation(call: Call, types: Types) -> pa.DataType:
    if kind(types[0]) == "duration":
        return DURATION
    if kind(types[0]) == "null":
        return pa.float64()
    if kind(types[0]) not in NUMBERS:
        raise TypeMismatch(f"'-' does not work on {types[0]}", call, "it changes the sign of a number")
    return plain(types[0])


def absolute(call: Call, types: Types) -> pa.DataType:
    if kind(types[0]) == "duration":
        return DURATION
    return real_or_exact(call, types)


def real_or_exact(call: Call, types: Types) -> pa.DataType:
    """The type of the one numeric argument."""
    require(call.arguments[0], types[0], "number", name(call))
    return pa.float64() if pa.types.is_null(types[0]) else plain(types[0])


def real(call: Call, types: Types) -> pa.DataType:
    """Functions of numbers whose result is always a double."""
    for argument, type_ in zip(call.arguments, types, strict=True):
        require(argument, type_, "number", name(call))
    return pa.float64()


def whole(call: Call, types: Types) -> pa.DataType:
    """FLOOR and CEIL: a decimal without fraction for a decimal, else a bigint."""
    operand = real_or_exact(call, types)
    if pa.types.is_decimal(operand):
        return bounded_decimal(operand.precision - operand.scale + 1, 0)
    return pa.int64()


def rounding(call: Call, types: Types) -> pa.DataType:
    operand = real_or_exact(call, types)
    digits = rounding_digits(call)
    if not pa.types.is_decimal(operand):
        return operand
    whole_digits = operand.precision - operand.scale + 1
    if digits < 0:
        return bounded_decimal(max(whole_digits, 1 - digits), 0)
    scale = min(operand.scale, digits)
    return pa.decimal128(min(whole_digits + scale, 38), scale)


def rounding_digits(call: Call) -> int:
    if len(call.arguments) == 1:
        return 0
    digits = call.arguments[1]
    if not isinstance(digits, Literal) or type(digits.value) is not int or abs(digits.value) > 100:
        problem = "the number of digits of ROUND must be a whole number from -100 to 100"
        raise TypeMismatch(problem, digits, "for example ROUND(x, 2)")
    return digits.value


def decimal_literal_type(value: Decimal) -> pa.DataType | None:
    """The narrowest decimal that holds a value; None if 38 digits are not enough."""
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale, 1)
    return pa.decimal128(precision, scale) if precision <= 38 else None
