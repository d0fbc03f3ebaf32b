"""Patterns of text: the parts of a LIKE pattern, and the syntax of numbers, dates and timestamps in CAST."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation

ANY = "%"
ONE = "_"
"""The wildcards of LIKE: any number of characters, and one character."""

WHOLE = r"^\s*(?P<number>[+-]?[0-9]+)(?:\.[0-9]*)?\s*$"
REAL = r"^\s*(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?)[dDfF]?\s*$"
UNUSUAL = r"(?i)^\s*(?P<number>[+-]?(?:inf(?:inity)?|nan))\s*$"
DATE = r"^\s*(?P<year>[0-9]{4})(?:-(?P<month>[0-9]{1,2})(?:-(?P<day>[0-9]{1,2})(?:[T ](?s:.)*)?)?)?\s*$"
TIMESTAMP = (
    r"^\s*(?P<year>[0-9]{4})(?:-(?P<month>[0-9]{1,2})(?:-(?P<day>[0-9]{1,2})"
    r"(?:[T ](?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{1,2})"
    r"(?::(?P<second>[0-9]{1,2})(?:\.(?P<fraction>[0-9]{1,9}))?)?"
    r"(?:\s*(?P<zone>Z|UTC|GMT|[+-][0-9]{1,2}(?::?[0-9]{2})?))?)?)?)?\s*$"
)
"""Both Python's `re` and Arrow's RE2 match these. Two adjacent parts must never match the same characters in several
ways: `re` would try them all, in time quadratic in the length of the text."""


def like_parts(pattern: str, escape: str = "\\") -> list[tuple[str, bool]] | None:
    """The characters of a LIKE pattern, each with whether it is a wildcard.

    None if the escape character does not come before a wildcard or another escape character.

    >>> like_parts("a%")
    [('a', False), ('%', True)]
    """
    parts: list[tuple[str, bool]] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            escaped = next(characters, "")
            if escaped not in (ANY, ONE, escape) or not escaped:
                return None
            parts.append((escaped, False))
        else:
            parts.append((character, character in (ANY, ONE)))
    return parts


def date_from_text(text: str) -> date | None:
    """The date in a text, as CAST reads it; None if the text is not a date."""
    match = re.match(DATE, text)
    if match is None:
        return None
    try:
        return date(int(match["year"]), int(match["month"] or 1), int(match["day"] or 1))
    except ValueError:
        return None


def timestamp_from_text(text: str) -> datetime | None:
    """The timestamp in a text, converted to UTC, without a zone; None if the text is not a timestamp.

    >>> timestamp_from_text("2024-01-01 02:00:00.5+02:00")
    datetime.datetime(2024, 1, 1, 0, 0, 0, 500000)
    """
    match = re.match(TIMESTAMP, text)
    if match is None:
        return None
    fraction = (match["fraction"] or "").ljust(6, "0")[:6]
    hour, minute, second = (int(match[name] or 0) for name in ("hour", "minute", "second"))
    month, day = (int(match[name] or 1) for name in ("month", "day"))
    try:
        moment = datetime(int(match["year"]), month, day, hour, minute, second, int(fraction))
        offset = zone_offset(match["zone"] or "")
        return None if offset is None else moment - timedelta(minutes=offset)
    except (ValueError, OverflowError):
        return None


def zone_offset(zone: str) -> int | None:
    """The offset of a zone from UTC in minutes; None if it is not a valid zone."""
    if zone in ("", "Z", "UTC", "GMT"):
        return 0
    digits = zone[1:].replace(":", "")
    hours, minutes = (int(digits), 0) if len(digits) <= 2 else (int(digits[:-2]), int(digits[-2:]))
    if hours > 18 or minutes > 59:
        return None
    return (hours * 60 + minutes) * (-1 if zone[0] == "-" else 1)


def number_from_text(text: str) -> int | float | Decimal | None:
    """The number in a text: an int, a Decimal or, with an exponent, a float; None if the text is not a number."""
    match = re.match(REAL, text)
    if match is None:
        match = re.match(UNUSUAL, text)
        return None if match is None else float(match["number"])
    number = match["number"]
    if "e" in number.lower():
        return float(number)
    if "." not in number:
        return whole_number(number)
    try:
        return Decimal(number)
    except InvalidOperation:
        return None


def whole_number(digits: str) -> int:
    """The integer of any number of digits; `int` refuses texts of more than 4,300 digits.

    >>> whole_number("-007"), whole_number("9" * 5_000) == 10**5_000 - 1
    (-7, True)
    """
    return int(Decimal(digits))


def in_utc(moment: datetime) -> datetime:
    """A timestamp without a zone as one in UTC."""
    return moment.replace(tzinfo=UTC)
