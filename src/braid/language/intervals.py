"""Constants of the form INTERVAL ..: lengths of time."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal

from sqlglot import exp

from braid.errors import QueryError, Span, did_you_mean
from braid.language.nodes import span_of
from braid.language.refusal import Unsupported
from braid.model.duration import UNITS, unit_length
from braid.model.expressions.expression import Literal
from braid.model.expressions.types import DURATION

LARGEST_INTERVAL = 2**62
"""The longest interval, in microseconds."""

_LENGTH = re.compile(r"\s*([+-]?[0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]+)\s*")
"""A number with its unit of time."""

_CLOCK_FIELDS = ("day", "hour", "minute", "second")
"""The units of DAY TO SECOND, from the largest to the smallest."""

_SEPARATORS = {"day": r"\s+", "hour": ":", "minute": ":"}
"""The sign between a field and the next one."""

_FIELD_LIMITS = {"hour": 24, "minute": 60, "second": 60}
"""Every field but the first is less than this."""


def interval_literal(node: exp.Interval, text: str) -> Literal:
    """INTERVAL 5 MINUTES, INTERVAL '5' MINUTE, INTERVAL '2 days 3 hours', INTERVAL '1 02:03:04' DAY TO SECOND."""
    span = span_of(node)
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
        raise QueryError("this INTERVAL is too long", text, span, "the longest one has about 146,000 years")
    return Literal(timedelta(microseconds=microseconds), DURATION, span)


def _sum_microseconds(lengths: str, span: Span | None, text: str) -> int | None:
    """The sum of several lengths of time, each with its unit: '2 days 3 hours'."""
    total = position = 0
    while position < len(lengths):
        match = _LENGTH.match(lengths, position)
        microseconds = None if match is None else _unit_microseconds(match[1], match[2], span, text)
        if match is None or microseconds is None:
            return None
        total += microseconds
        position = match.end()
    return total


def _unit_microseconds(amount: str, unit: str, span: Span | None, text: str) -> int | None:
    length = 7 * UNITS["day"] if unit.lower() in ("week", "weeks") else unit_length(unit)
    if length is None:
        if unit.lower().rstrip("s") in ("month", "year", "quarter"):
            raise Unsupported(
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


def _clock_microseconds(amount: str, first: str, last: str) -> int | None:
    """A length of time with fields from one unit to a smaller one: '1 02:03:04.5' DAY TO SECOND."""
    names = [name.lower().rstrip("s") for name in (first, last)]
    if not set(names) <= set(_CLOCK_FIELDS):
        return None
    start, end = map(_CLOCK_FIELDS.index, names)
    if start >= end:
        return None
    fields = _CLOCK_FIELDS[start : end + 1]
    match = re.fullmatch(rf"\s*(?P<sign>[+-]?){_clock_pattern(fields)}\s*", amount)
    if match is None:
        return None
    if any(Decimal(match[field]) >= _FIELD_LIMITS[field] for field in fields[1:]):
        return None
    total = sum((Decimal(match[field]) * UNITS[field] for field in fields), Decimal(0))
    return int(-total if match["sign"] == "-" else total)


def _clock_pattern(fields: tuple[str, ...]) -> str:
    """The regular expression of some fields, each a group by its name; only seconds may have a fraction."""
    pattern = ""
    for field in fields:
        fraction = "(?:[.][0-9]{1,9})?" if field == "second" else ""
        separator = _SEPARATORS[field] if field != fields[-1] else ""
        pattern += f"(?P<{field}>[0-9]{{1,9}}{fraction}){separator}"
    return pattern
