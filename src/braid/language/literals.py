"""Constants: numbers and times as written in a query, with Spark's types."""

from __future__ import annotations

import re
from decimal import Decimal

import numpy as np
import pyarrow as pa

from braid.errors import QueryError, Span
from braid.model.expressions.expression import Literal
from braid.model.expressions.number_rules import decimal_literal_type
from braid.model.expressions.patterns import date_from_text, in_utc, number_from_text, timestamp_from_text, whole_number
from braid.model.expressions.types import NUMBERS, kind, plain

_SUFFIXES = {"l": pa.int64(), "s": pa.int16(), "y": pa.int8(), "d": pa.float64(), "f": pa.float32()}
"""The types that letters after a number stand for; `bd` stands for a decimal."""


def number_literal(written: str, span: Span | None, text: str) -> Literal:
    """A whole number is an int if it fits, else a bigint, else a decimal. 1.5 is a decimal, 1e3 a double."""
    value = number_from_text(written)
    if isinstance(value, float):
        return _float_literal(value, pa.float64(), span, text)
    if value is None:
        raise QueryError(f"'{written}' is no number", text, span, "for example 42, 1.5 or 1e3")
    literal = exact_literal(value, span)
    if literal is None:
        raise QueryError("this number has more than 38 digits", text, span, "write it as a double: 1e40")
    return literal


def _float_literal(value: float, type_: pa.DataType, span: Span | None, text: str) -> Literal:
    """A floating-point number. One too large for its type is an error: only a cast gives infinity."""
    with np.errstate(over="ignore"):
        is_finite = np.isfinite(type_.to_pandas_dtype()(value))
    if not is_finite:
        hint = "write CAST('Infinity' AS DOUBLE) if you mean it"
        raise QueryError(f"this number is too large for a {type_}", text, span, hint)
    return Literal(value, type_, span)


def exact_literal(value: int | Decimal, span: Span | None) -> Literal | None:
    """A whole number or decimal in the narrowest type that holds it; None if no type does."""
    if isinstance(value, int):
        for type_ in (pa.int32(), pa.int64()):
            if _fits(value, type_):
                return Literal(value, type_, span)
        value = Decimal(value)
    decimal_type = decimal_literal_type(value)
    return None if decimal_type is None else Literal(value, decimal_type, span)


def _fits(value: int | Decimal, integer_type: pa.DataType) -> bool:
    limit: int = 2 ** (integer_type.bit_width - 1)
    return -limit <= value < limit


def negative(literal: Literal, span: Span | None) -> Literal | None:
    """A number with its sign changed; None for other literals. The least integer of a type stays, as negation wraps."""
    value, type_ = literal.value, literal.type
    if isinstance(value, Decimal):
        return Literal(value.copy_negate(), type_, span)  # the operator - would round it
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    is_least = pa.types.is_integer(type_) and value == -(2 ** (type_.bit_width - 1))
    return Literal(value if is_least else -value, type_, span)


def suffixed_number(written: str, span: Span, text: str) -> Literal | None:
    """A number with the letters of its type after it: 10L, 5S, -5Y, 1.5D, 1.5F, 1.5BD; None if it is not one."""
    match = re.fullmatch(r"(-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]{1,3})?)(bd|[lsydf])", written.lower())
    if match is None:
        return None
    number, suffix = match.groups()
    if suffix == "bd":
        return _decimal_literal(number, span, text)
    type_ = _SUFFIXES[suffix]
    if pa.types.is_floating(type_):
        return _float_literal(float(number), type_, span, text)
    value = whole_number(number) if number.removeprefix("-").isdigit() else None
    if value is None or not _fits(value, type_):
        raise QueryError(f"{number} is no {type_}", text, span, "leave out the letter after it")
    return Literal(value, type_, span)


def _decimal_literal(number: str, span: Span, text: str) -> Literal:
    value = Decimal(number)
    type_ = decimal_literal_type(value)
    if type_ is None:
        raise QueryError("this number has more than 38 digits", text, span, "write it as a double: 1e40")
    return Literal(value, type_, span)


def time_literal(written: str, type_: pa.DataType, span: Span | None, text: str) -> Literal:
    """DATE '..' or TIMESTAMP '..'."""
    literal = convert_text(Literal(written, pa.string(), span), type_)
    if literal is None:
        example = "DATE '2024-01-31'" if pa.types.is_date(type_) else "TIMESTAMP '2024-01-31 12:00:00'"
        raise QueryError(f"'{written}' is no {kind(type_)}", text, span, f"for example {example}")
    return literal


def convert_text(literal: Literal, type_: pa.DataType) -> Literal | None:
    """A text converted to the type of the value it is compared with.

    None if the text is no such value, or has more than the type holds: a fraction for an integer, a time for a date.
    """
    assert isinstance(literal.value, str)
    target, span = kind(type_), literal.span
    if target == "date":
        day = date_from_text(literal.value)
        moment = timestamp_from_text(literal.value)
        is_midnight = moment is None or moment.time() == moment.min.time()
        return Literal(day, pa.date32(), span) if day is not None and is_midnight else None
    if target == "timestamp":
        moment = timestamp_from_text(literal.value)
        if moment is None:
            return None
        if type_.tz is None:
            return Literal(moment, pa.timestamp("us"), span)
        return Literal(in_utc(moment), pa.timestamp("us", "UTC"), span)
    if target == "boolean":
        word = literal.value.strip().lower()
        return Literal(word == "true", pa.bool_(), span) if word in ("true", "false") else None
    number = number_from_text(literal.value) if target in NUMBERS else None
    return None if number is None else _converted_number(number, plain(type_), span)


def _converted_number(number: int | float | Decimal, type_: pa.DataType, span: Span | None) -> Literal | None:
    if pa.types.is_floating(type_):
        return Literal(float(Decimal(number)), type_, span)
    if pa.types.is_integer(type_):
        if isinstance(number, float) or not _fits(number, type_) or number != int(number):
            return None
        return exact_literal(int(number), span)
    return Literal(number, pa.float64(), span) if isinstance(number, float) else exact_literal(number, span)
