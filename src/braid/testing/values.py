"""Types and values for generated streams: families of types for keys, and payloads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from braid.testing.choices import Choices

DAY = 86_400
"""Seconds in a day."""

PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
NANOSECONDS = 10**9
"""Nanoseconds in a second."""

MIDNIGHT = DAY * NANOSECONDS
MOMENTS = (
    *(0, MIDNIGHT, MIDNIGHT + NANOSECONDS // 2, -1),
    *(MIDNIGHT + 1_500, MIDNIGHT + 1_900, -MIDNIGHT, 5 * MIDNIGHT // 2),
)
"""Times in nanoseconds since 1970; two of them are in one microsecond."""

TEXTS = ("a", "ab", "b", "", "B", "a%b", "ä", "abc")
FLOATS = (1.5, 0.0, -0.0, float("nan"), -2.25, float("inf"), 3.0)


@dataclass(frozen=True)
class Family:
    """Types whose values can be compared with each other. `value` makes the n-th value of the domain in a type."""

    name: str
    types: tuple[pa.DataType, ...]
    value: Callable[[int, pa.DataType], Any]


def _integer(index: int, kind: pa.DataType) -> int:
    """Some have the same low bits: -1 and the largest unsigned integer, 3 and 2**32 + 3."""
    if index == 2:
        return 2**64 - 1 if kind == pa.uint64() else -1
    return 2**32 + 3 if index == 3 and kind.bit_width == 64 else index


def _decimal(index: int, kind: pa.DataType) -> Decimal:
    """Multiples of one half; index 3 has more digits if the scale allows."""
    digits = Decimal("0.0001") if index == 3 and kind.scale >= 4 else 0
    return Decimal(index) / 2 + digits


def _number(index: int, kind: pa.DataType) -> Any:
    """Two of the integers are equal in double precision; index 3 is 2.5, and 2 in an integer type."""
    exact = {3: Decimal("2.5"), 4: Decimal(-1)}.get(index, Decimal(index))
    if pa.types.is_decimal(kind):
        return exact
    value = 2**53 + index - 1 if index in (1, 2) and kind != pa.int32() else exact
    return float(value) if pa.types.is_floating(kind) else int(value)


def _double(index: int, kind: pa.DataType) -> float:
    return (0.0, 1.5, float("nan"), -0.0, -2.25, 3.0, float("-inf"), 0.5)[index]


def _time(index: int, kind: pa.DataType) -> int:
    """Midnights, times shortly after midnight and times before 1970, rounded down to the unit of the type."""
    nanoseconds = MOMENTS[index]
    return nanoseconds // MIDNIGHT if pa.types.is_date(kind) else nanoseconds * PER_SECOND[kind.unit] // NANOSECONDS


def _hour(index: int, kind: pa.DataType) -> int:
    """Full hours; two have a fraction of a second more. All are rounded down to the unit of the type."""
    microseconds = index * 3_600_000_000 + {2: 500_000, 3: 1}.get(index, 0)
    return microseconds * PER_SECOND[kind.unit] // 10**6


FAMILIES = (
    Family("integer", (pa.int64(), pa.int32(), pa.uint64(), pa.int16()), _integer),
    Family(
        "string",
        (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())),
        lambda i, _: TEXTS[i],
    ),
    Family("decimal", (pa.decimal128(10, 2), pa.decimal128(14, 4)), _decimal),
    Family("double", (pa.float64(), pa.float32()), _double),
    Family("timestamp", tuple(pa.timestamp(unit) for unit in ("us", "ms", "s", "ns")), _time),
    Family("instant", (pa.timestamp("us", "UTC"), pa.timestamp("s", "Asia/Tokyo"), pa.timestamp("us")), _time),
    Family("date", (pa.date32(),), lambda i, _: i - 1),
    Family("bool", (pa.bool_(),), lambda i, _: i % 2 == 0),
    Family("number", (pa.int64(), pa.float64(), pa.decimal128(10, 2), pa.int32()), _number),
    Family("day", (pa.date32(), pa.timestamp("us")), _time),
    Family("time", (pa.time64("us"), pa.time32("s")), _hour),
    Family("duration", (pa.duration("us"), pa.duration("ms")), _hour),
    Family("binary", (pa.binary(), pa.large_binary()), lambda i, _: TEXTS[i].encode()),
)

LARGEST_DOMAIN = 8
"""The most values of a family."""

PAYLOADS: tuple[tuple[pa.DataType, tuple[Any, ...]], ...] = (
    (pa.string(), ("p", "q", "")),
    (pa.list_(pa.int64()), ([1, None], [], [2])),
    (pa.struct({"x": pa.int32(), "y": pa.string()}), ({"x": 1, "y": None}, {"x": None, "y": "p"})),
    (pa.map_(pa.string(), pa.int64()), ([("p", 1)], [])),
    (pa.dictionary(pa.int32(), pa.string()), ("p", "q")),
    (pa.large_binary(), (b"p", b"\x00")),
    (pa.list_(pa.float64(), 2), ([1.0, float("nan")], [0.5, None])),
    (pa.decimal256(40, 3), (Decimal("1.250"), Decimal("-0.001"))),
    (pa.duration("ms"), (1, 2_000)),
    (pa.time64("us"), (1, 2_000)),
    (pa.timestamp("ns", "UTC"), (1, 2_000)),
    (pa.null(), (None,)),
)
"""Types of payload columns, which are selected but never compared, with some of their values."""


def key_value(choices: Choices, family: Family, kind: pa.DataType, domain: int, skewed: bool) -> Any:
    """A value for a key column. It is rarely null; half of the skewed keys have the first value."""
    if choices.once_in(12):
        return None
    if skewed and choices.once_in(2):
        return family.value(0, kind)
    return family.value(choices.integer(0, domain - 1), kind)


def nullable(choices: Choices, values: Sequence[Any], once_in: int = 10) -> Any:
    return None if choices.once_in(once_in) else choices.pick(values)


def array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """An Arrow array of Python values; times, dates and durations are given as integers."""
    if pa.types.is_dictionary(kind):
        return pa.array(values, kind.value_type).dictionary_encode().cast(kind)
    return pa.array(values, kind)
