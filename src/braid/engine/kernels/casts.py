"""Casts from one type to another. A value that the target type cannot hold becomes null or wraps; no cast fails."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from braid.engine.kernels.text_casts import FROM_TEXT, to_text
from braid.engine.kernels.values import (
    Datum,
    Kernel,
    by_unique,
    constant,
    fit_decimal,
    null_where,
    one_row,
    row_by_row,
    wrapped,
)
from braid.model.expressions.types import kind, plain

SECOND = 1_000_000
"""The microseconds of a second."""

_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def cast_kernel(source: pa.DataType, target: pa.DataType) -> Kernel | None:
    """The kernel that converts an array from one type to the other; None if nothing is to be done."""
    if source == target:
        return None
    if types.is_null(source):
        return lambda values: pa.nulls(len(values), target)
    to_plain = _plain_kernel(source)
    to_target = _between(plain(source), target)
    if to_plain is None:
        return to_target
    return to_plain if to_target is None else lambda values: to_target(to_plain(values))


class Conversion:
    """The cast of an argument. A constant is cast once, and the result is kept for the following batches."""

    def __init__(self, source: pa.DataType, target: pa.DataType) -> None:
        self._kernel = cast_kernel(source, target)
        self._converted: tuple[pa.Scalar, pa.Scalar] | None = None
        """The last constant, before and after."""

    def __call__(self, value: Datum) -> Datum:
        if self._kernel is None:
            return value
        if isinstance(value, pa.Array):
            return self._kernel(value)
        converted = self._converted
        if converted is None or converted[0] is not value:
            converted = self._converted = value, self._kernel(one_row(value))[0]
        return converted[1]


def convert_all(kernel: Kernel, types_: Iterable[pa.DataType], targets: Iterable[pa.DataType]) -> Kernel:
    """The kernel with each of its arguments cast to its target type first."""
    conversions = [Conversion(type_, target) for type_, target in zip(types_, targets, strict=True)]
    return lambda *values: kernel(*(convert(value) for convert, value in zip(conversions, values, strict=True)))


def in_type(kernel: Kernel, types_: tuple[pa.DataType, ...], common: pa.DataType) -> Kernel:
    """The kernel with all its arguments cast to one type first."""
    if all(type_ == common for type_ in types_):
        return kernel
    return convert_all(kernel, types_, [common] * len(types_))


def _plain_kernel(source: pa.DataType) -> Kernel | None:
    """The cast from the type of a column to the type in which its values are computed; None if they are the same."""
    target = plain(source)
    if source == target:
        return None
    if isinstance(source, pa.BaseExtensionType):
        convert_storage = _plain_kernel(source.storage_type)
        return (
            (lambda values: values.storage)
            if convert_storage is None
            else lambda values: convert_storage(values.storage)
        )
    if types.is_dictionary(source) or types.is_run_end_encoded(source):
        convert_decoded = _plain_kernel(source.value_type)
        decode = _decode(source)
        return decode if convert_decoded is None else lambda values: convert_decoded(decode(values))
    if types.is_timestamp(source) or types.is_duration(source):
        return _to_microseconds(source.unit, target)
    if types.is_time(source):
        return lambda values: values.cast(target)
    if types.is_date64(source):
        return lambda values: _whole_days(floor_divide(values.cast(pa.int64()), 86_400_000)).cast(target)
    return lambda values: pc.cast(values, target)


def _whole_days(days: Datum) -> Datum:
    """Days since 1970 in 32 bits, as dates store them; null if they do not fit."""
    out_of_range = pc.or_(pc.less(days, -(2**31)), pc.greater(days, 2**31 - 1))
    return null_where(out_of_range, days).cast(pa.int32())


def _decode(source: pa.DataType) -> Kernel:
    if types.is_dictionary(source):
        return lambda values: values.dictionary_decode()
    return lambda values: pc.run_end_decode(values)


def _to_microseconds(unit: str, target: pa.DataType) -> Kernel:
    """Times in microseconds: finer units are rounded down; null if 64 bits cannot hold the microseconds."""
    if unit == "us":
        return lambda values: values.cast(pa.int64()).cast(target)
    if unit == "ns":
        return lambda values: floor_divide(values.cast(pa.int64()), 1_000).cast(target)
    factor = SECOND // _PER_SECOND[unit]
    limit = constant((2**63 - 1) // factor, pa.int64())

    def multiply(values: Datum) -> Datum:
        counts = values.cast(pa.int64())
        out_of_range = pc.or_(pc.greater(counts, limit), pc.less(counts, pc.negate(limit)))
        return pc.multiply(null_where(out_of_range, counts), factor).cast(target)

    return multiply


def floor_divide(counts: Datum, divisor: int) -> Datum:
    """The quotients, rounded down. Arrow's division rounds towards zero."""
    quotients = pc.divide(counts, divisor)
    too_large = pc.greater(pc.multiply(quotients, divisor), counts)
    return pc.subtract(quotients, too_large.cast(pa.int64()))


def _between(source: pa.DataType, target: pa.DataType) -> Kernel | None:
    """The cast between two types in which values are computed (see `plain`); None if they are the same."""
    if source == target:
        return None
    from_kind, to_kind = kind(source), kind(target)
    if from_kind == "string":
        return FROM_TEXT[to_kind](target)
    if to_kind == "string":
        return to_text(source, target)
    if from_kind == "binary" or to_kind == "binary":
        return lambda values: pc.cast(values, target)
    if to_kind == "boolean":
        zero = constant(Decimal(0) if from_kind == "decimal" else 0, source)
        return lambda values: pc.not_equal(values, zero)
    if from_kind == "boolean":
        return _chain(lambda values: pc.cast(values, pa.int8()), pa.int8(), target)
    if to_kind == "integer":
        return _TO_INTEGER[from_kind](target)
    if to_kind == "decimal":
        return _to_decimal(source, target)
    if to_kind == "float":
        return _to_float(from_kind, target)
    return _to_time(source, target)


def _chain(first: Kernel, middle: pa.DataType, target: pa.DataType) -> Kernel:
    """The kernel `first`, whose result is of type `middle`, followed by the cast to `target`."""
    second = _between(middle, target)
    return first if second is None else lambda values: second(first(values))


def _wrap_integer(target: pa.DataType) -> Kernel:
    """An integer that is too large keeps its low bits, as in Java."""
    return lambda values: pc.cast(values, target, safe=False)


def _saturate_float(target: pa.DataType) -> Kernel:
    """As in Java: the fraction is dropped, NaN is 0, and a number that is too large is the largest int or long.

    Smaller types take the low bits of the int, also as in Java.
    """
    saturated = pa.int64() if target == pa.int64() else pa.int32()
    top = 2 ** (saturated.bit_width - 1)

    def convert(values: Datum) -> Datum:
        values = pc.trunc(pc.cast(values, pa.float64()))
        too_high = pc.greater_equal(values, float(top))
        too_low = pc.less(values, float(-top))
        outside = pc.or_(pc.or_(too_high, too_low), pc.is_nan(values))
        integers = pc.cast(pc.if_else(outside, 0.0, values), saturated)
        integers = pc.if_else(too_low, constant(-top, saturated), integers)
        integers = pc.if_else(too_high, constant(top - 1, saturated), integers)
        return pc.cast(integers, target, safe=False)

    return convert


def _truncate_decimal(target: pa.DataType) -> Kernel:
    return row_by_row(lambda value: wrapped(int(value), target), target)


def _time_to_integer(target: pa.DataType) -> Kernel:
    """The whole seconds since 1970, null if they do not fit. Numbers wrap instead."""
    most = 2 ** (target.bit_width - 1) - 1

    def convert(values: Datum) -> Datum:
        seconds = floor_divide(values.cast(pa.int64()), SECOND)
        out_of_range = pc.or_(pc.greater(seconds, most), pc.less(seconds, -most - 1))
        return pc.cast(null_where(out_of_range, seconds), target)

    return convert


_TO_INTEGER = {
    "integer": _wrap_integer,
    "float": _saturate_float,
    "decimal": _truncate_decimal,
    "timestamp": _time_to_integer,
}


def _to_decimal(source: pa.DataType, target: pa.DataType) -> Kernel:
    if types.is_integer(source):
        exact = pa.decimal128(19, 0)
        if target.precision - target.scale >= 19:
            return lambda values: pc.cast(pc.cast(pc.cast(values, pa.int64()), exact), target)
        return row_by_row(lambda value: fit_decimal(Decimal(value), target), target)
    if types.is_decimal(source):
        if target.scale >= source.scale and target.precision - target.scale >= source.precision - source.scale:
            return lambda values: pc.cast(values, target)
        return row_by_row(lambda value: fit_decimal(value, target), target)
    if types.is_floating(source):
        return row_by_row(lambda value: fit_decimal(Decimal(repr(value)), target), target)
    seconds = row_by_row(lambda value: fit_decimal(Decimal(value).scaleb(-6), target), target)
    return lambda values: seconds(values.cast(pa.int64()))


def _to_float(from_kind: str, target: pa.DataType) -> Kernel:
    if from_kind == "timestamp":
        # The microseconds of far times exceed 2**53 too, and become the nearest double.
        to_double = _to_float("integer", pa.float64())
        return lambda values: pc.cast(pc.divide(to_double(values.cast(pa.int64())), float(SECOND)), target)
    if from_kind == "decimal":
        # Arrow's own cast is sometimes wrong in the last digit; a cast through text gives the nearest double.
        return lambda values: pc.cast(pc.cast(pc.cast(values, pa.string()), pa.float64()), target)
    # An integer beyond 2**53 becomes the nearest double.
    return lambda values: pc.cast(values, target, safe=False)


def _to_time(source: pa.DataType, target: pa.DataType) -> Kernel:
    if types.is_timestamp(source) and types.is_date(target):
        return lambda values: pc.cast(floor_divide(values.cast(pa.int64()), 86_400 * SECOND), pa.int32()).cast(target)
    if types.is_date(source):
        return lambda values: pc.multiply(pc.cast(values.cast(pa.int32()), pa.int64()), 86_400 * SECOND).cast(target)
    if types.is_timestamp(source):
        return lambda values: values.cast(pa.int64()).cast(target)
    if types.is_integer(source):
        to_microseconds = _to_microseconds("s", target)
        return lambda values: to_microseconds(values.cast(pa.int64()))
    if types.is_decimal(source):
        convert = by_unique(_microseconds, pa.int64())
        return lambda values: convert(values).cast(target)
    saturate = _saturate_float(pa.int64())

    def seconds_to_time(values: Datum) -> Datum:
        counts = saturate(pc.multiply(pc.cast(values, pa.float64()), float(SECOND)))
        return null_where(pc.invert(pc.is_finite(values)), counts).cast(target)

    return seconds_to_time


def _microseconds(seconds: Decimal) -> int | None:
    count = int(seconds.scaleb(6))
    return count if -(2**63) <= count < 2**63 else None
