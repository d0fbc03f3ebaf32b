"""Windows: how long a tuple of a stream stays alive. Event time is counted in whole microseconds."""

from __future__ import annotations

import re
from dataclasses import dataclass

from braid.errors import ModelError
from braid.model.checks import check, check_each, check_name

FOREVER = 2**63 - 1
"""The end of a lifetime that never ends."""

LONGEST = 2**61
"""No window is longer than this many microseconds (about 73,000 years): ends do not overflow."""


@dataclass(frozen=True, slots=True)
class Range:
    """Alive for `length` microseconds; with `slide`, from the next multiple of it on."""

    length: int
    slide: int | None = None

    def __post_init__(self) -> None:
        check(self.length, int, "the length of a window")
        if self.slide is not None:
            check(self.slide, int, "the slide of a window")
        if not 0 < self.length <= LONGEST:
            raise ModelError(f"a window lasts from 1 microsecond to {LONGEST} microseconds, not {self.length}")
        if self.slide is not None and not 0 < self.slide <= LONGEST:
            raise ModelError(f"a slide is at least 1 microsecond and at most {LONGEST}, not {self.slide}")

    def __str__(self) -> str:
        slide = "" if self.slide is None else f" SLIDE {duration_text(self.slide)}"
        return f"[RANGE {duration_text(self.length)}{slide}]"


@dataclass(frozen=True, slots=True)
class Rows:
    """Alive until `count` more tuples have come, in its stream or in its partition of it."""

    count: int
    partition_by: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check(self.count, int, "the rows of a window")
        if self.count < 1:
            raise ModelError(f"a window holds at least 1 row, not {self.count}")
        check_each(self.partition_by, str, "the columns to partition by")
        for column in self.partition_by:
            check_name(column, "a column to partition by")

    def __str__(self) -> str:
        names = (f"`{name.replace('`', '``')}`" if _needs_quotes(name) else name for name in self.partition_by)
        by = f"PARTITION BY {', '.join(names)} " if self.partition_by else ""
        return f"[{by}ROWS {self.count}]"


def _needs_quotes(name: str) -> bool:
    return not name.isidentifier() or name.upper() in ("BY", "PARTITION", "ROWS")


@dataclass(frozen=True, slots=True)
class Now:
    """Alive at its own timestamp only."""

    def __str__(self) -> str:
        return "[NOW]"


@dataclass(frozen=True, slots=True)
class Unbounded:
    """Alive from its timestamp on, for ever."""

    def __str__(self) -> str:
        return "[UNBOUNDED]"


Window = Range | Rows | Now | Unbounded

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
