"""Casts between strings and other types, in Spark's syntax; a string that is not a valid value becomes null."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from braid.engine.kernels.values import Datum, Kernel, by_unique, fit_decimal
from braid.model.expressions.patterns import REAL, UNUSUAL, WHOLE, date_from_text, in_utc, timestamp_from_text
from braid.model.expressions.types import kind

_TRUE = pa.array(["t", "true", "y", "yes", "1"])
_FALSE = pa.array(["f", "false", "n", "no", "0"])


def _number(values: Datum, pattern: str) -> Datum:
    """The number in each text, without a plus sign, which Arrow cannot read; null if the text does not match."""
    groups = pc.extract_regex(values.cast(pa.string()), pattern)
    return pc.utf8_ltrim(pc.struct_field(groups, "number"), "+")


def _to_integer(target: pa.DataType) -> Kernel:
    limit = 2 ** (target.bit_width - 1)

    def convert(values: Datum) -> Datum:
        # Put a zero before a decimal point that has no digit before it.
        texts = pc.replace_substring_regex(values.cast(pa.string()), r"^(\s*[+-]?)\.", r"\10.")
        digits = pc.replace_substring_regex(_number(texts, WHOLE), r"^(-?)0+([0-9])", r"\1\2")
        # Without leading zeros a bigint has at most 20 characters, and so many fit in a decimal.
        digits = pc.if_else(pc.less_equal(pc.utf8_length(digits), 20), digits, pa.scalar(None, pa.string()))
        numbers = pc.cast(digits, pa.decimal128(20, 0))
        fits = pc.and_(
            pc.greater_equal(numbers, pa.scalar(Decimal(-limit), pa.decimal128(20, 0))),
            pc.less(numbers, pa.scalar(Decimal(limit), pa.decimal128(20, 0))),
        )
        return pc.cast(pc.if_else(fits, numbers, pa.scalar(None, numbers.type)), target)

    return convert


def _to_float(target: pa.DataType) -> Kernel:
    def convert(values: Datum) -> Datum:
        numbers = pc.coalesce(_number(values, REAL), _number(values, UNUSUAL))
        return pc.cast(pc.cast(numbers, pa.float64()), target, safe=False)

    return convert


def _to_decimal(target: pa.DataType) -> Kernel:
    parse = by_unique(lambda text: fit_decimal(Decimal(text), target), target)
    return lambda values: parse(_number(values, REAL))


def _to_boolean(target: pa.DataType) -> Kernel:
    def convert(values: Datum) -> Datum:
        words = pc.utf8_lower(pc.utf8_trim_whitespace(values.cast(pa.string())))
        is_true = pc.is_in(words, value_set=_TRUE)
        is_false = pc.is_in(words, value_set=_FALSE)
        return pc.if_else(pc.or_(is_true, is_false), is_true, pa.scalar(None, pa.bool_()))

    return convert


def _to_timestamp(target: pa.DataType) -> Kernel:
    def parse(text: str) -> datetime | None:
        timestamp = timestamp_from_text(text)
        if timestamp is None or target.tz is None:
            return timestamp
        return in_utc(timestamp)

    return by_unique(parse, target)


FROM_TEXT: dict[str, Callable[[pa.DataType], Kernel]] = {
    "integer": _to_integer,
    "float": _to_float,
    "decimal": _to_decimal,
    "boolean": _to_boolean,
    "date": lambda target: by_unique(date_from_text, target),
    "timestamp": _to_timestamp,
    "string": lambda target: lambda values: pc.cast(values, target),
    "binary": lambda target: lambda values: pc.cast(values, target),
}
"""For each kind of target type, the function that makes the cast from strings."""


def to_text(source: pa.DataType, target: pa.DataType) -> Kernel:
    """The cast of values of a type to strings."""
    if kind(source) == "timestamp":
        write_timestamp = by_unique(_write_timestamp, target)
        return lambda values: write_timestamp(values.cast(pa.int64()))
    if kind(source) == "float":
        shortest = repr if source == pa.float64() else lambda value: str(np.float32(value))
        return by_unique(lambda value: _write_float(value, shortest(value)), target)
    write = _WRITERS.get(kind(source))
    return by_unique(write, target) if write is not None else lambda values: pc.cast(values, target)


def _write_float(value: float, shortest: str) -> str:
    """As Java does: 1.0, 1.0E10, NaN. `shortest` is the shortest text that identifies the value within its type.

    >>> [_write_float(value, repr(value)) for value in (1.0, 1e10, 1.5e-7, 123456.789, float("inf"))]
    ['1.0', '1.0E10', '1.5E-7', '123456.789', 'Infinity']
    """
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        plain = f"{Decimal(shortest):f}"
        return plain if "." in plain else plain + ".0"
    sign, digits, exponent = Decimal(shortest).normalize().as_tuple()
    assert isinstance(exponent, int)
    fraction = "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{digits[0]}.{fraction}E{exponent + len(digits) - 1}"


def _write_decimal(value: Decimal) -> str:
    """As Java does: 0.50, but 0E-8 and 1.5E-7."""
    return str(value)


def _write_timestamp(microseconds: int) -> str | None:
    try:
        moment = datetime(1970, 1, 1) + timedelta(microseconds=microseconds)
    except OverflowError:
        return None
    text = moment.isoformat(sep=" ", timespec="microseconds")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _read_utf8(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


_WRITERS: dict[str, Callable[[Any], str | None]] = {"decimal": _write_decimal, "binary": _read_utf8}
