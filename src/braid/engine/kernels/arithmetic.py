"""Arithmetic. Integers wrap; a decimal with too many digits and a division by zero are null."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from braid.engine.kernels.casts import cast_kernel, convert_all, in_type
from braid.engine.kernels.compare import Types
from braid.engine.kernels.values import Builder, Datum, Kernel, constant, fit_decimal, null_where, row_by_row, wrapped
from braid.model.expressions.expression import Call
from braid.model.expressions.number_rules import operand_decimals
from braid.model.expressions.types import DURATION, INSTANT, MICROSECONDS, kind

DAY = constant(86_400_000_000, pa.int64())
"""The microseconds of a day."""


def additive(kernel: Kernel, exact: Callable[[Decimal, Decimal], Decimal]) -> Builder:
    """Addition or subtraction of numbers or times; `exact` computes it for decimals that Arrow cannot compute."""

    def build(call: Call, types: Types, result: pa.DataType) -> Kernel:
        kinds = {kind(type_) for type_ in types}
        if kinds & {"timestamp", "date", "duration"}:
            return _of_times(kernel, types, result)
        if pa.types.is_decimal(result):
            return _of_decimals(kernel, exact, call, types, result)
        return in_type(kernel, types, result)

    return build


def _of_times(kernel: Kernel, types: Types, result: pa.DataType) -> Kernel:
    """Adds or subtracts times and durations as counts of microseconds; an integer is a number of days."""
    to_result = cast_kernel(MICROSECONDS, result)

    def evaluate(left: Datum, right: Datum) -> Datum:
        count = kernel(left, right)
        if result == DURATION:
            return count.cast(DURATION)
        moment = count.cast(MICROSECONDS)
        return moment if to_result is None else to_result(moment)

    return _on_microseconds(evaluate, types)


_TYPES_IN_MICROSECONDS = {"duration": DURATION, "timestamp": INSTANT, "date": INSTANT}


def _on_microseconds(kernel: Kernel, types: Types) -> Kernel:
    """The kernel with all arguments converted to counts of microseconds first."""
    targets = [_TYPES_IN_MICROSECONDS.get(kind(type_), pa.int64()) for type_ in types]

    def evaluate(*values: Datum) -> Datum:
        return kernel(*(_microseconds(value, type_) for value, type_ in zip(values, types, strict=True)))

    return convert_all(evaluate, types, targets)


def _microseconds(value: Datum, type_: pa.DataType) -> Datum:
    count = value.cast(pa.int64())
    return pc.multiply(count, DAY) if kind(type_) == "integer" else count


def multiply(call: Call, types: Types, result: pa.DataType) -> Kernel:
    if result == DURATION:
        return _scaled(pc.multiply, types)
    if pa.types.is_decimal(result):
        return _of_decimals(pc.multiply, lambda left, right: left * right, call, types, result)
    return in_type(pc.multiply, types, result)


def _scaled(kernel: Kernel, types: Types) -> Kernel:
    """A duration multiplied or divided by a number, rounded to microseconds; null if these do not fit in 64 bits."""
    if kernel is pc.multiply and "integer" in (kind(types[0]), kind(types[1])):
        targets = [DURATION if kind(type_) == "duration" else pa.int64() for type_ in types]
        return convert_all(_multiply_counts, types, targets)
    targets = [DURATION if kind(type_) == "duration" else pa.float64() for type_ in types]

    def evaluate(left: Datum, right: Datum) -> Datum:
        count = kernel(_double(left), _double(right))
        fits = pc.less(pc.abs(count), 2.0**63)
        count = pc.round(null_where(pc.invert(fits), count), round_mode="half_towards_infinity")
        return count.cast(pa.int64()).cast(DURATION)

    return convert_all(evaluate, types, targets)


def _multiply_counts(left: Datum, right: Datum) -> Datum:
    first, second = left.cast(pa.int64()), right.cast(pa.int64())
    product = pc.multiply(first, second)
    # If the product has wrapped, dividing it by one factor does not give the other.
    quotient = pc.divide(product, null_where(pc.equal(second, 0), second))
    return null_where(pc.not_equal(quotient, first), product).cast(DURATION)


def _double(value: Datum) -> Datum:
    if pa.types.is_duration(value.type):
        value = value.cast(pa.int64())
    return pc.cast(value, pa.float64(), safe=False)


def divide(call: Call, types: Types, result: pa.DataType) -> Kernel:
    """Division: a double for all kinds of numbers."""
    return _scaled(_divide_doubles, types) if result == DURATION else in_type(_divide_doubles, types, pa.float64())


def _divide_doubles(left: Datum, right: Datum) -> Datum:
    return pc.divide(left, null_where(pc.equal(right, 0.0), right))


def integer_division(call: Call, types: Types, result: pa.DataType) -> Kernel:
    """DIV: the quotient, rounded towards zero."""
    if "decimal" in map(kind, types):
        return _in_decimals(row_by_row(_divide_decimals, pa.int64()), call, types)
    return in_type(_divide_integers, types, pa.int64())


def _divide_integers(left: Datum, right: Datum) -> Datum:
    zero, minus_one = (constant(value, right.type) for value in (0, -1))
    quotient = pc.divide(left, null_where(pc.equal(right, zero), right))
    # The only quotient that overflows: the smallest integer divided by -1 is itself, as wrapping negation gives it.
    return pc.if_else(pc.equal(right, minus_one), pc.negate(left), quotient)


def _divide_decimals(left: Decimal, right: Decimal) -> int | None:
    if not right:
        return None
    with localcontext(prec=200):
        return wrapped(int(left / right), pa.int64())


def remainder(call: Call, types: Types, result: pa.DataType) -> Kernel:
    """The remainder of a division, with the sign of the dividend."""
    if pa.types.is_decimal(result):
        return _in_decimals(
            row_by_row(lambda left, right: _decimal_remainder(left, right, result), result), call, types
        )
    return in_type(_float_remainder if pa.types.is_floating(result) else _integer_remainder, types, result)


def _integer_remainder(left: Datum, right: Datum) -> Datum:
    return pc.subtract(left, pc.multiply(right, _divide_integers(left, right)))


def _float_remainder(left: Datum, right: Datum) -> Datum:
    # Arrow has no exact remainder of floats.
    with np.errstate(all="ignore"):
        remainders = pa.array(np.fmod(_numpy(left), _numpy(right)), left.type)
    missing = pc.or_kleene(pc.or_(pc.is_null(left), pc.is_null(right)), pc.equal(right, constant(0.0, right.type)))
    return null_where(missing, remainders)


def _numpy(value: Datum) -> Any:
    width = value.type.to_pandas_dtype()
    if isinstance(value, pa.Scalar):
        return width(value.as_py() if value.is_valid else np.nan)
    return value.to_numpy(zero_copy_only=False).astype(width, copy=False)


def _decimal_remainder(left: Decimal, right: Decimal, result: pa.DataType) -> Decimal | None:
    if not right:
        return None
    with localcontext(prec=200):
        return fit_decimal(left % right, result)


def negate(call: Call, types: Types, result: pa.DataType) -> Kernel:
    if result == DURATION:
        return _on_microseconds(lambda count: pc.negate(count).cast(DURATION), types)
    return in_type(pc.negate, types, result)


def _of_decimals(
    kernel: Kernel,
    exact: Callable[[Decimal, Decimal], Decimal],
    call: Call,
    types: Types,
    result: pa.DataType,
) -> Kernel:
    """Arithmetic of decimals: by Arrow if its result is exact and of the right type, else row by row by `exact`."""
    left, right = operand_decimals(call, types)
    # Arrow computes the type of its result; the call on empty arrays shows it.
    if _is_exact(kernel, left, right) and kernel(pa.nulls(0, left), pa.nulls(0, right)).type == result:
        return _in_decimals(kernel, call, types)

    def compute(first: Decimal, second: Decimal) -> Decimal | None:
        with localcontext(prec=200):
            return fit_decimal(exact(first, second), result)

    return _in_decimals(row_by_row(compute, result), call, types)


def _is_exact(kernel: Kernel, left: pa.DataType, right: pa.DataType) -> bool:
    """Whether the exact result has at most 38 digits, so that Arrow does not refuse the types."""
    if kernel is pc.multiply:
        return bool(left.precision + right.precision < 38)
    whole_digits = max(left.precision - left.scale, right.precision - right.scale)
    return bool(whole_digits + max(left.scale, right.scale) < 38)


def _in_decimals(kernel: Kernel, call: Call, types: Types) -> Kernel:
    """The kernel with both arguments cast to decimals first."""
    return convert_all(kernel, types, operand_decimals(call, types))


BUILDERS: dict[str, Builder] = {
    "add": additive(pc.add, lambda left, right: left + right),
    "subtract": additive(pc.subtract, lambda left, right: left - right),
    "multiply": multiply,
    "divide": divide,
    "div": integer_division,
    "remainder": remainder,
    "negate": negate,
}
