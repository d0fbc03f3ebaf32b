"""Constants as they are written: numbers, texts, times and lengths of time, with Spark's types."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
from sqlglot import exp

from braid.errors import QueryError, Span, did_you_mean
from braid.language.refusal import place_of
from braid.model.duration import UNITS, unit_length
from braid.model.expressions.expression import Literal
from braid.model.expressions.number_rules import decimal_literal_type
from braid.model.expressions.patterns import date_from_text, in_utc, number_from_text, timestamp_from_text, whole_number
from braid.model.expressions.types import DURATION, NUMBERS, kind, plain

LARGEST_INTERVAL = 2**62


def number_literal(written: str, span: Span | None, text: str) -> Literal:
    """An int if it fits, else a bigint, else a decimal; 1.5 is a decimal and 1e3 a double."""
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
    """A floating-point number as it is written; only a cast makes an infinite one."""
    with np.errstate(over="ignore"):
        is_finite = np.isfinite(type_.to_pandas_dtype()(value))
    if not is_finite:
        hint = "write CAST('Infinity' AS DOUBLE) if you mean it"
        raise QueryError(f"this number is too large for a {type_}", text, span, hint)
    return Literal(value, type_, span)


def exact_literal(value: int | Decimal, span: Span | None) -> Literal | None:
    """The literal of a whole number or decimal in its narrowest type; None if none is wide enough."""
    if isinstance(value, int):
        for type_ in (pa.int32(), pa.int64()):
            if -(2 ** (type_.bit_width - 1)) <= value < 2 ** (type_.bit_width - 1):
                return Literal(value, type_, span)
        value = Decimal(value)
    decimal_type = decimal_literal_type(value)
    return None if decimal_type is None else Literal(value, decimal_type, span)


def negative(literal: Literal, span: Span | None) -> Literal | None:
    """The literal with its sign turned; None if it is no number. The least integer of a type is itself again."""
    value, type_ = literal.value, literal.type
    if isinstance(value, Decimal):
        return Literal(value.copy_negate(), type_, span)  # a minus would round it
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    is_least = pa.types.is_integer(type_) and value == -(2 ** (type_.bit_width - 1))
    return Literal(value if is_least else -value, type_, span)


_SUFFIXES = {"l": pa.int64(), "s": pa.int16(), "y": pa.int8(), "d": pa.float64(), "f": pa.float32()}


def suffixed_number(written: str, span: Span, text: str) -> Literal | None:
    """A number whose type is said by the letters after it: 10L, 5S, -5Y, 1.5D, 1.5F, 1.5BD."""
    match = re.fullmatch(r"(-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]{1,3})?)(bd|[lsydf])", written.lower())
    if match is None:
        return None
    number, suffix = match.groups()
    if suffix == "bd":
        return exact_decimal(number, span, text)
    type_ = _SUFFIXES[suffix]
    if pa.types.is_floating(type_):
        return _float_literal(float(number), type_, span, text)
    value = whole_number(number) if number.removeprefix("-").isdigit() else None
    limit = 2 ** (type_.bit_width - 1)
    if value is None or not -limit <= value < limit:
        raise QueryError(f"{number} is no {type_}", text, span, "leave out the letter after it")
    return Literal(value, type_, span)


def exact_decimal(number: str, span: Span, text: str) -> Literal:
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
    """A text as a value of a type it is compared with; None if it writes none, or more than the type can hold."""
    assert isinstance(literal.value, str)
    wanted, span = kind(type_), literal.span
    if wanted == "date":
        day = date_from_text(literal.value)
        moment = timestamp_from_text(literal.value)
        is_midnight = moment is None or moment.time() == moment.min.time()
        return Literal(day, pa.date32(), span) if day is not None and is_midnight else None
    if wanted == "timestamp":
        moment = timestamp_from_text(literal.value)
        if moment is None:
            return None
        return Literal(moment if type_.tz is None else in_utc(moment), pa.timestamp("us", type_.tz and "UTC"), span)
    if wanted == "boolean":
        word = literal.value.strip().lower()
        return Literal(word == "true", pa.bool_(), span) if word in ("true", "false") else None
    number = number_from_text(literal.value) if wanted in NUMBERS else None
    return None if number is None else _converted_number(number, plain(type_), span)


def _converted_number(number: int | float | Decimal, type_: pa.DataType, span: Span | None) -> Literal | None:
    if pa.types.is_floating(type_):
        return Literal(float(Decimal(number)), type_, span)
    if pa.types.is_integer(type_):
        limit = 2 ** (type_.bit_width - 1)
        if isinstance(number, float) or not -limit <= number < limit or number != int(number):
            return None
        return exact_literal(int(number), span)
    return Literal(number, pa.float64(), span) if isinstance(number, float) else exact_literal(number, span)


def interval_literal(node: exp.Interval, text: str) -> Literal:
    """INTERVAL 5 MINUTES, INTERVAL '5' MINUTE, INTERVAL '2 days 3 hours', INTERVAL '1 02:03:04' DAY TO SECOND."""
    span = place_of(node)
    amount, unit = node.args.get("this"), node.args.get("unit")
    example = "for example INTERVAL 5 MINUTES"
    if not isinstance(amount, exp.Literal):
        hint = "multiply for more: n * INTERVAL 1 MINUTE"
        raise QueryError("the length of an INTERVAL is a number", text, span, hint)
    if unit is None and not any(letter.isalpha() for letter in amount.name):
        raise QueryError("this INTERVAL has no unit", text, span, example)
    if unit is None:
        microseconds = _sum_microseconds(amount.name, span, text)
    elif isinstance(unit, exp.IntervalSpan):
        microseconds = _clock_microseconds(amount.name, unit.this.name, unit.expression.name)
    else:
        microseconds = _unit_microseconds(amount.name, unit.name, span, text)
    if microseconds is None:
        raise QueryError(f"'{amount.name}' is no length of time", text, span, example)
    if abs(microseconds) > LARGEST_INTERVAL:
        raise QueryError("this INTERVAL is too long", text, span, "about 146,000 years are as long as it gets")
    return Literal(timedelta(microseconds=microseconds), DURATION, span)


_LENGTH = re.compile(r"\s*([+-]?[0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]+)\s*")


def _sum_microseconds(lengths: str, span: Span | None, text: str) -> int | None:
    """One length of time after the other, each with its unit: '2 days 3 hours'."""
    total, place = 0, 0
    while place < len(lengths):
        match = _LENGTH.match(lengths, place)
        microseconds = None if match is None else _unit_microseconds(match[1], match[2], span, text)
        if match is None or microseconds is None:
            return None
        total, place = total + microseconds, match.end()
    return total


def _unit_microseconds(amount: str, unit: str, span: Span | None, text: str) -> int | None:
    length = 7 * UNITS["day"] if unit.lower() in ("week", "weeks") else unit_length(unit)
    if length is None:
        if unit.lower().rstrip("s") in ("month", "year", "quarter"):
            raise QueryError(
                "intervals of months and years are not supported",
                text,
                span,
                "they have no fixed length: use days",
            )
        raise QueryError(
            f"'{unit}' is no unit of time",
            text,
            span,
            did_you_mean(unit.lower(), [f"{name}s" for name in UNITS]),
        )
    if not re.fullmatch(r"[+-]?[0-9]+(\.[0-9]{1,9})?", amount.strip()):
        return None
    return int(Decimal(amount.strip()) * length)


_CLOCK = ("day", "hour", "minute", "second")
_FIELD_LIMITS = {"hour": 24, "minute": 60, "second": 60}
"""Every field but the first is less than this."""


def _clock_microseconds(amount: str, first: str, last: str) -> int | None:
    """The fields of a length of time from one unit to a smaller one: '1 02:03:04.5' DAY TO SECOND."""
    names = [name.lower().rstrip("s") for name in (first, last)]
    if not set(names) <= set(_CLOCK) or _CLOCK.index(names[0]) >= _CLOCK.index(names[1]):
        return None
    fields = _CLOCK[_CLOCK.index(names[0]) : _CLOCK.index(names[1]) + 1]
    separators = {"day": r"\s+", "hour": ":", "minute": ":"}
    pattern = "".join(
        rf"(?P<{field}>[0-9]{{1,9}}{r'(?:[.][0-9]{1,9})?' if field == 'second' else ''})"
        + (separators[field] if field != fields[-1] else "")
        for field in fields
    )
    match = re.fullmatch(rf"\s*(?P<sign>[+-]?){pattern}\s*", amount)
    if match is None:
        return None
    if any(Decimal(match[field]) >= _FIELD_LIMITS[field] for field in fields[1:]):
        return None
    total = sum((Decimal(match[field]) * UNITS[field] for field in fields), Decimal(0))
    return int(-total if match["sign"] == "-" else total)
