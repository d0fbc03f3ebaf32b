"""Numeric functions: ABS, ROUND, FLOOR, CEIL, powers and logarithms."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal, localcontext

import pyarrow as pa
import pyarrow.compute as pc

from braid.engine.kernels.casts import Conversion, cast_kernel, in_type
from braid.engine.kernels.compare import Types
from braid.engine.kernels.values import Builder, Datum, Kernel, constant, fit_decimal, null_where, row_by_row, wrapped
from braid.model.expressions.expression import Call
from braid.model.expressions.number_rules import rounding_digits
from braid.model.expressions.types import DURATION, plain


def of_doubles(kernel: Kernel) -> Builder:
    """A function whose arguments are cast to doubles."""

    def build(call: Call, types: Types, result: pa.DataType) -> Kernel:
        return in_type(kernel, types, pa.float64())

    return build


def _logarithm(kernel: Kernel) -> Kernel:
    """The logarithm, null for arguments of 0 and less."""
    return lambda value: kernel(null_where(pc.less_equal(value, 0.0), value))


def _logarithm_to(base: Datum, value: Datum) -> Datum:
    return pc.divide(_logarithm(pc.ln)(value), _logarithm(pc.ln)(base))


def _power(base: Datum, exponent: Datum) -> Datum:
    """As in Java, x to the power of NaN, and 1 or -1 to the power of infinity, are NaN; in C and Arrow they are 1."""
    undefined = pc.or_(pc.is_nan(exponent), pc.and_(pc.is_inf(exponent), pc.equal(pc.abs(base), 1.0)))
    return pc.if_else(undefined, constant(float("nan"), pa.float64()), pc.power(base, exponent))


def absolute(call: Call, types: Types, result: pa.DataType) -> Kernel:
    if result == DURATION:
        return in_type(lambda value: pc.abs(value.cast(pa.int64())).cast(DURATION), types, DURATION)
    return in_type(pc.abs, types, result)


def whole(kernel: Kernel) -> Builder:
    """FLOOR or CEIL."""

    def build(call: Call, types: Types, result: pa.DataType) -> Kernel:
        if pa.types.is_integer(result) and not pa.types.is_floating(plain(types[0])):
            return in_type(lambda value: value, types, result)
        working_type: pa.DataType = pa.float64()
        if pa.types.is_decimal(result):
            # Rounding up may need one digit more.
            operand = plain(types[0])
            working_type = pa.decimal256(operand.precision + 1, operand.scale)
        to_result = cast_kernel(working_type, result)
        assert to_result is not None
        return in_type(lambda value: to_result(kernel(value)), types, working_type)

    return build


def rounded(call: Call, types: Types, result: pa.DataType) -> Kernel:
    """ROUND: half away from zero, of the shortest decimal text of a number.

    So ROUND(2.675, 2) is 2.68, although the double nearest to 2.675 is a little smaller than that.
    """
    digits = rounding_digits(call)
    operand_type = plain(types[0]) if pa.types.is_decimal(result) else result
    convert = Conversion(types[0], operand_type)
    kernel = _rounding_kernel(result, digits)
    return lambda value, *_: kernel(convert(value))


def _rounding_kernel(result: pa.DataType, digits: int) -> Kernel:
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
    with localcontext(prec=500):  # a double has up to 309 digits before the point, and ROUND keeps up to 100 after it
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
