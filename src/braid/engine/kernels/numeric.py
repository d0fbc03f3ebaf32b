"""Functions of numbers."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal, localcontext

import pyarrow as pa
import pyarrow.compute as pc

from braid.engine.kernels.casts import Conversion, cast_kernel, in_type
from braid.engine.kernels.compare import Types
from braid.engine.kernels.values import Builder, Kernel, Value, constant, fit_decimal, null_where, row_by_row, wrapped
from braid.model.expressions.expression import Call
from braid.model.expressions.number_rules import rounding_digits
from braid.model.expressions.types import DURATION, plain


def of_doubles(kernel: Kernel) -> Builder:
    def build(call: Call, types: Types, result: pa.DataType) -> Kernel:
        return in_type(kernel, types, pa.float64())

    return build


def _logarithm(kernel: Kernel) -> Kernel:
    """Null where there is none."""
    return lambda value: kernel(null_where(pc.less_equal(value, 0.0), value))


def _logarithm_to(base: Value, value: Value) -> Value:
    return pc.divide(_logarithm(pc.ln)(value), _logarithm(pc.ln)(base))


def _power(base: Value, exponent: Value) -> Value:
    """As in Java, NaN for whatever to the power of NaN, and for 1 and -1 to that of infinity; C has 1 there."""
    unknown = pc.or_(pc.is_nan(exponent), pc.and_(pc.is_inf(exponent), pc.equal(pc.abs(base), 1.0)))
    return pc.if_else(unknown, constant(float("nan"), pa.float64()), pc.power(base, exponent))


def absolute(call: Call, types: Types, result: pa.DataType) -> Kernel:
    if result == DURATION:
        return in_type(lambda value: pc.abs(value.cast(pa.int64())).cast(DURATION), types, DURATION)
    return in_type(pc.abs, types, result)


def whole(kernel: Kernel) -> Builder:
    """FLOOR or CEIL."""

    def build(call: Call, types: Types, result: pa.DataType) -> Kernel:
        if pa.types.is_integer(result) and not pa.types.is_floating(plain(types[0])):
            return in_type(lambda value: value, types, result)
        between: pa.DataType = pa.float64()
        if pa.types.is_decimal(result):
            # Rounding up may take one digit more.
            operand = plain(types[0])
            between = pa.decimal256(operand.precision + 1, operand.scale)
        finish = cast_kernel(between, result)
        assert finish is not None
        return in_type(lambda value: finish(kernel(value)), types, between)

    return build


def rounded(call: Call, types: Types, result: pa.DataType) -> Kernel:
    """Half away from zero, of the number as it is written: ROUND(2.675, 2) is 2.68, if no double is 2.675."""
    digits = rounding_digits(call)
    first = Conversion(types[0], result if not pa.types.is_decimal(result) else plain(types[0]))
    kernel = _rounding(result, digits)
    return lambda value, *_: kernel(first(value))


def _rounding(result: pa.DataType, digits: int) -> Kernel:
    if pa.types.is_decimal(result):
        return row_by_row(lambda value: fit_decimal(_round(value, digits), result), result)
    if pa.types.is_integer(result):
        if digits >= 0:
            return lambda value: value
        return row_by_row(lambda value: wrapped(int(_round(Decimal(value), digits)), result), result)
    if digits == 0:
        return lambda value: pc.round(value, round_mode="half_towards_infinity")
    return row_by_row(lambda value: _round_float(value, digits), result)


def _round(value: Decimal, digits: int) -> Decimal:
    with localcontext(prec=500):  # 309 digits of a double, and 100 after the point
        return value.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)


def _round_float(value: float, digits: int) -> float:
    number = Decimal(repr(value))
    return float(_round(number, digits)) if number.is_finite() else value


BUILDERS: dict[str, Builder] = {
    "abs": absolute,
    "sign": of_doubles(lambda value: pc.cast(pc.sign(value), pa.float64())),
    "sqrt": of_doubles(pc.sqrt),
    "exp": of_doubles(pc.exp),
    "ln": of_doubles(_logarithm(pc.ln)),
    "log10": of_doubles(_logarithm(pc.log10)),
    "log": of_doubles(_logarithm_to),
    "power": of_doubles(_power),
    "floor": whole(pc.floor),
    "ceil": whole(pc.ceil),
    "round": rounded,
}
