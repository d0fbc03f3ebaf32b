"""Functions of dates and timestamps; all of them compute in UTC."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from braid.engine.kernels.casts import Conversion, floor_divide, in_type
from braid.engine.kernels.compare import Types
from braid.engine.kernels.values import Builder, Datum, Kernel
from braid.model.expressions.expression import Call, Literal
from braid.model.expressions.rules import TRUNCATION_UNITS
from braid.model.expressions.types import MICROSECONDS


def part(kernel: Kernel) -> Builder:
    """A part of a time, such as its year."""

    def build(call: Call, types: Types, result: pa.DataType) -> Kernel:
        return in_type(lambda value: pc.cast(kernel(value), result), types, MICROSECONDS)

    return build


def _day_of_week(value: Datum) -> Datum:
    """The day of the week; 1 is Sunday."""
    return pc.day_of_week(value, count_from_zero=False, week_start=7)


def fractional_second(call: Call, types: Types, result: pa.DataType) -> Kernel:
    def evaluate(value: Datum) -> Datum:
        in_minute = pc.subtract(value, pc.floor_temporal(value, unit="minute")).cast(pa.int64())
        return pc.multiply(
            pc.cast(in_minute, pa.decimal128(19, 0)), pa.scalar("0.000001").cast(pa.decimal128(7, 6))
        ).cast(result)

    return in_type(evaluate, types, MICROSECONDS)


def epoch(microseconds: int, divide: Callable[[Datum, int], Datum] = floor_divide) -> Builder:
    """The time since 1970 in whole units, each of `microseconds` microseconds, by default rounded down."""

    def build(call: Call, types: Types, result: pa.DataType) -> Kernel:
        return in_type(lambda value: divide(value.cast(pa.int64()), microseconds), types, MICROSECONDS)

    return build


def date_trunc(call: Call, types: Types, result: pa.DataType) -> Kernel:
    argument = call.arguments[0]
    assert isinstance(argument, Literal)
    unit = TRUNCATION_UNITS[str(argument.value).lower()]
    to_naive = Conversion(types[1], MICROSECONDS)
    to_result = Conversion(MICROSECONDS, result)
    return lambda _, value: to_result(pc.floor_temporal(to_naive(value), unit=unit, week_starts_monday=True))


BUILDERS: dict[str, Builder] = {
    **{name: part(getattr(pc, name)) for name in ("year", "quarter", "month", "day", "hour", "minute", "second")},
    "week": part(pc.iso_week),
    "dayofweek": part(_day_of_week),
    "dayofyear": part(pc.day_of_year),
    "fractional_second": fractional_second,
    "unix_seconds": epoch(1_000_000),
    "unix_millis": epoch(1_000),
    "unix_micros": epoch(1),
    "unix_timestamp": epoch(1_000_000, pc.divide),  # unlike the newer functions, Spark rounds this one towards zero
    "date_trunc": date_trunc,
}
