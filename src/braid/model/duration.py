"""Lengths of time as people write them, in microseconds."""

from __future__ import annotations

import re
from datetime import timedelta

from braid.errors import StreamError

Duration = str | timedelta
"""A length of time as users give it: `"5 seconds"` or a timedelta."""

UNITS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
}

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
    """Microseconds in a unit of time under any of its names; None for a name that is no unit.

    >>> unit_length("MINUTES"), unit_length("sec"), unit_length("fortnight")
    (60000000, 1000000, None)
    """
    name = name.lower()
    singular = name[:-1] if name.endswith("s") and len(name) > 1 and name not in ABBREVIATIONS else name
    return UNITS.get(ABBREVIATIONS.get(singular, singular))


def duration_text(microseconds: int) -> str:
    """A length of time in the largest unit that holds it evenly.

    >>> duration_text(120_000_000), duration_text(1_500)
    ('2 MINUTES', '1500 MICROSECONDS')
    """
    for name, length in reversed(UNITS.items()):
        if microseconds % length == 0:
            count = microseconds // length
            return f"{count} {name.upper()}{'' if count == 1 else 'S'}"
    raise AssertionError("a microsecond divides every length")


def parse_duration(text: str) -> int | None:
    """A length of time in microseconds; None for a text that is none.

    >>> parse_duration("5 seconds"), parse_duration("2min"), parse_duration("soon")
    (5000000, 120000000, None)
    """
    # Nothing here lasts as long as twenty digits of anything, and `int` refuses texts of thousands.
    parts = re.fullmatch(r"\s*(\d{1,20})\s*([A-Za-z]+)\s*", text)
    if parts is None:
        return None
    length = unit_length(parts[2])
    return None if length is None else int(parts[1]) * length


def microseconds(what: str, value: Duration) -> int:
    """A length of time that a user gave for `what`, in microseconds; `StreamError` for anything else."""
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1)
    length = parse_duration(value) if isinstance(value, str) else None
    if length is None:
        raise StreamError(f"{what} is {value!r}, which is no length of time; write it as '5 seconds'")
    return length


def lateness_of(stream: str, value: Duration) -> int:
    """The lateness that a user gave for a stream, in microseconds."""
    return microseconds(f"the lateness of stream '{stream}'", value)
