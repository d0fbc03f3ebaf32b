"""Casts between text and everything else, as Spark reads and writes it; null for a text that is no value."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from braid.engine.kernels.values import Kernel, Value, by_unique, fit_decimal
from braid.model.expressions.patterns import REAL, UNUSUAL, WHOLE, date_from_text, in_utc, timestamp_from_text
from braid.model.expressions.types import kind

_TRUE = pa.array(["t", "true", "y", "yes", "1"])
_FALSE = pa.array(["f", "false", "n", "no", "0"])


def _number(values: Value, pattern: str) -> Value:
    """The part of each text that is the number, without the plus sign that Arrow does not read."""
    found = pc.struct_field(pc.extract_regex(values.cast(pa.string()), pattern), "number")
    return pc.utf8_ltrim(found, "+")


def _to_integer(target: pa.DataType) -> Kernel:
    limit = 2 ** (target.bit_width - 1)

    def convert(values: Value) -> Value:
        # Without a digit before the point, there is a zero.
        texts = pc.replace_substring_regex(values.cast(pa.string()), r"^(\s*[+-]?)\.", r"\10.")
        digits = pc.replace_substring_regex(_number(texts, WHOLE), r"^(-?)0+([0-9])", r"\1\2")
        # Twenty characters and more are no bigint whatever they say; the rest fits a decimal.
        digits = pc.if_else(pc.less_equal(pc.utf8_length(digits), 20), digits, pa.scalar(None, pa.string()))
        numbers = pc.cast(digits, pa.decimal128(20, 0))
        fits = pc.and_(
            pc.greater_equal(numbers, pa.scalar(Decimal(-limit), pa.decimal128(20, 0))),
            pc.less(numbers, pa.scalar(Decimal(limit), pa.decimal128(20, 0))),
        )
        return pc.cast(pc.if_else(fits, numbers, pa.scalar(None, numbers.type)), target)

    return convert


def _to_float(target: pa.DataType) -> Kernel:
    def convert(values: Value) -> Value:
        numbers = pc.coalesce(_number(values, REAL), _number(values, UNUSUAL))
        return pc.cast(pc.cast(numbers, pa.float64()), target, safe=False)

    return convert


def _to_decimal(target: pa.DataType) -> Kernel:
    parse = by_unique(lambda text: fit_decimal(Decimal(text), target), target)
    return lambda values: parse(_number(values, REAL))


def _to_boolean(target: pa.DataType) -> Kernel:
    def convert(values: Value) -> Value:
        words = pc.utf8_lower(pc.utf8_trim_whitespace(values.cast(pa.string())))
        yes, no = pc.is_in(words, value_set=_TRUE), pc.is_in(words, value_set=_FALSE)
        return pc.if_else(pc.or_(yes, no), yes, pa.scalar(None, pa.bool_()))

    return convert


def _to_timestamp(target: pa.DataType) -> Kernel:
    def moment(text: str) -> datetime | None:
        parsed = timestamp_from_text(text)
        return parsed if parsed is None or target.tz is None else in_utc(parsed)

    return by_unique(moment, target)


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


def to_text(source: pa.DataType, target: pa.DataType) -> Kernel:
    """How values of a type are written."""
    if kind(source) == "timestamp":
        write_moment = by_unique(_write_timestamp, target)
        return lambda values: write_moment(values.cast(pa.int64()))
    if kind(source) == "float":
        shortest = repr if source == pa.float64() else lambda value: str(np.float32(value))
        return by_unique(lambda value: _write_float(value, shortest(value)), target)
    write = _WRITERS.get(kind(source))
    return by_unique(write, target) if write is not None else lambda values: pc.cast(values, target)


def _write_float(value: float, shortest: str) -> str:
    """As Java does: 1.0, 1.0E10, NaN. `shortest` has the digits that tell the value from others of its type.

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
