"""Durations as users write them, converted to microseconds."""

from __future__ import annotations

import re
from datetime import timedelta
from fractions import Fraction

from braid.errors import StreamError

Duration = str | timedelta
"""A duration as users give it: `"5 seconds"` or a timedelta."""

UNITS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
}
"""The length of each unit of time in microseconds."""

ABBREVIATIONS = {
    "us": "microsecond",
    "usec": "microsecond",
    "micro": "microsecond",
    "ms": "millisecond",
    "msec": "millisecond",
    "milli": "millisecond",
    "s": "second",
    "sec": "second",
    "m": "minute",
    "min": "minute",
    "h": "hour",
    "hr": "hour",
    "d": "day",
}


def unit_length(name: str) -> int | None:
    """The microseconds of a unit of time under any of its names; None if the name is not a unit.

    >>> unit_length("MINUTES"), unit_length("sec"), unit_length("fortnight")
    (60000000, 1000000, None)
    """
    name = name.lower()
    singular = name[:-1] if name.endswith("s") and len(name) > 1 and name not in ABBREVIATIONS else name
    return UNITS.get(ABBREVIATIONS.get(singular, singular))


def duration_text(microseconds: int) -> str:
    """A duration in the largest unit that divides it.

    >>> duration_text(120_000_000), duration_text(1_500)
    ('2 MINUTES', '1500 MICROSECONDS')
    """
    for name, length in reversed(UNITS.items()):
        if microseconds % length == 0:
            count = microseconds // length
            return f"{count} {name.upper()}{'' if count == 1 else 'S'}"
    raise AssertionError("a microsecond divides every length")


def parse_duration(text: str) -> int | None:
    """The microseconds of a duration; None if the text is not a duration of whole microseconds.

    >>> parse_duration("5 seconds"), parse_duration("0.5min"), parse_duration("soon")
    (5000000, 30000000, None)
    """
    # No duration needs more than 20 digits, and numbers are not read from texts of thousands of digits.
    match = re.fullmatch(r"\s*(\d{1,20}(?:\.\d{1,20})?)\s*([A-Za-z]+)\s*", text)
    if match is None:
        return None
    unit = unit_length(match[2])
    length = None if unit is None else Fraction(match[1]) * unit
    return None if length is None or length.denominator != 1 else int(length)


def microseconds(name: str, value: Duration) -> int:
    """The microseconds of a duration that a user gave for the setting `name`; `StreamError` for anything else."""
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1)
    length = parse_duration(value) if isinstance(value, str) else None
    if length is None:
        raise StreamError(f"{name} is {value!r}, which is not a duration; write it like '5 seconds'")
    return length


def lateness_of(stream: str, value: Duration) -> int:
    """The lateness that a user gave for a stream, in microseconds."""
    return microseconds(f"the lateness of stream '{stream}'", value)
