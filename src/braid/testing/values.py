"""Types and values for generated streams: key families whose types compare with each other, and payload."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from braid.testing.choices import Choices

DAY = 86_400
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
NANOSECONDS = 10**9
"""In a second."""
MIDNIGHT = DAY * NANOSECONDS
MOMENTS = (
    *(0, MIDNIGHT, MIDNIGHT + NANOSECONDS // 2, -1),
    *(MIDNIGHT + 1_500, MIDNIGHT + 1_900, -MIDNIGHT, 5 * MIDNIGHT // 2),
)
"""Nanoseconds since 1970; two of them are in one microsecond."""
TEXTS = ("a", "ab", "b", "", "B", "a%b", "ä", "abc")
FLOATS = (1.5, 0.0, -0.0, float("nan"), -2.25, float("inf"), 3.0)


@dataclass(frozen=True)
class Family:
    """Types that compare with each other. `value` gives the n-th value of the domain, in any of them."""

    name: str
    types: tuple[pa.DataType, ...]
    value: Callable[[int, pa.DataType], Any]


def _integer(index: int, kind: pa.DataType) -> int:
    """Among them numbers whose low bits are those of others: -1 and the largest without a sign, 3 and 2**32 + 3."""
    if index == 2:
        return 2**64 - 1 if kind == pa.uint64() else -1
    return 2**32 + 3 if index == 3 and kind.bit_width == 64 else index


def _decimal(index: int, kind: pa.DataType) -> Decimal:
    """Halves, and one that has more digits where there is room for them."""
    more = Decimal("0.0001") if index == 3 and kind.scale >= 4 else 0
    return Decimal(index) / 2 + more


def _number(index: int, kind: pa.DataType) -> Any:
    """Among them two integers that are one number in double precision, and a half beside a whole number."""
    exact = {3: Decimal("2.5"), 4: Decimal(-1)}.get(index, Decimal(index))
    if pa.types.is_decimal(kind):
        return exact
    number = 2**53 + index - 1 if index in (1, 2) and kind != pa.int32() else exact
    return float(number) if pa.types.is_floating(kind) else int(number)


def _double(index: int, kind: pa.DataType) -> float:
    return (0.0, 1.5, float("nan"), -0.0, -2.25, 3.0, float("-inf"), 0.5)[index]


def _time(index: int, kind: pa.DataType) -> int:
    """Midnights, and moments soon after one or before 1970, of which a coarser type has the beginning of its unit."""
    moment = MOMENTS[index]
    return moment // MIDNIGHT if pa.types.is_date(kind) else moment * PER_SECOND[kind.unit] // NANOSECONDS


def _hour(index: int, kind: pa.DataType) -> int:
    """Full hours, and two that are a little longer, of which a coarser type has the beginning of its unit."""
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
"""No family has more values than this."""

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
"""Types that only travel through a join, with some of their values."""


def key_value(choices: Choices, family: Family, kind: pa.DataType, domain: int, skewed: bool) -> Any:
    """A value for a key column: rarely null, and half of the time the same one where keys are skewed."""
    if choices.once_in(12):
        return None
    if skewed and choices.once_in(2):
        return family.value(0, kind)
    return family.value(choices.integer(0, domain - 1), kind)


def nullable(choices: Choices, values: Sequence[Any], once_in: int = 10) -> Any:
    return None if choices.once_in(once_in) else choices.pick(values)


def array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """An Arrow array of Python values; timestamps, dates and the like are given as numbers."""
    if pa.types.is_dictionary(kind):
        return pa.array(values, kind.value_type).dictionary_encode().cast(kind)
    return pa.array(values, kind)
