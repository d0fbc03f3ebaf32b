"""Columns of every Arrow type: carried along, joined on, compared, and deciding ties between rows."""

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import braid
from braid.testing import assert_same_rows, oracle

NUMBERS: list[Any] = [1, 2, None, 1]
TEXTS = ["a", "b", None, "a"]
BYTES = [b"aa", b"bb", None, b"aa"]
DECIMALS = [Decimal(1), Decimal(2), None, Decimal(1)]
DAYS = [0, 86_400_000, None, 0]
NANOSECONDS = [1_000, 2_000, None, 1_000]

ORDERED = [
    pa.array([True, False, None, True]),
    *(pa.array(NUMBERS, kind) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())),
    *(pa.array(NUMBERS, kind) for kind in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())),
    *(pa.array(NUMBERS, kind) for kind in (pa.float16(), pa.float32(), pa.float64())),
    *(pa.array(TEXTS, kind) for kind in (pa.string(), pa.large_string())),
    *(pa.array(BYTES, kind) for kind in (pa.binary(), pa.large_binary(), pa.binary(2))),
    *(pa.array(TEXTS, kind).dictionary_encode() for kind in (pa.string(), pa.large_string())),
    pa.array(NUMBERS).dictionary_encode(),
    pa.array(DECIMALS, pa.decimal128(38, 10)),
    pa.array(NUMBERS, pa.date32()),
    pa.array(DAYS, pa.date64()),
    *(pa.array(NUMBERS, pa.time32(unit)) for unit in ("s", "ms")),
    *(pa.array(NANOSECONDS, pa.time64(unit)) for unit in ("us", "ns")),
    *(pa.array(NANOSECONDS, pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")),
    pa.array(NANOSECONDS, pa.timestamp("ns", "Asia/Tokyo")),
    *(pa.array(NANOSECONDS, pa.duration(unit)) for unit in ("s", "ms", "us", "ns")),
]
CARRIED = [
    *ORDERED,
    pa.array(DECIMALS, pa.decimal32(5, 1)),
    pa.array(DECIMALS, pa.decimal256(60, 2)),
    pa.nulls(4),
    pa.array([[1], [2, None], None, []]),
    pa.array([[1], [2, None], None, []], pa.large_list(pa.int8())),
    pa.array([[1], [2], None, [None]], pa.list_(pa.int8(), 1)),
    pa.array([[1], [2, None], None, []], pa.list_view(pa.int8())),
    pa.array([{"x": 1, "y": ["a"]}, {"x": None, "y": None}, None, {"x": 1, "y": []}]),
    pa.array([[("a", 1)], [], None, [("a", None)]], pa.map_(pa.string(), pa.int64())),
    pa.array([(1, 2, 3), (0, 0, 1), None, (1, 2, 3)], pa.month_day_nano_interval()),
]
USES = {
    "equal": "SELECT a.id, b.id FROM s [RANGE 3us] a, s [RANGE 3us] b WHERE a.x = b.x",
    "less": "SELECT a.id, b.id FROM s [RANGE 3us] a, s [RANGE 3us] b WHERE a.x < b.x",
    "ties": "SELECT a.id, b.id FROM s [ROWS 1] a, s [RANGE 3us] b",
    "partitions": "SELECT a.id, b.id FROM s [PARTITION BY x ROWS 1] a, s [RANGE 3us] b",
}


def check(text: str, column: pa.Array) -> None:
    rows = pa.table({"ts": pa.array([1, 1, 2, 3], pa.timestamp("us")), "x": column, "id": range(4)})
    expected = oracle(text, {"s": rows})
    assert expected.num_rows
    for batch_rows in (None, 1, 3):
        assert_same_rows(braid.run(text, {"s": rows}, batch_rows=batch_rows), expected)


def type_of(value: object) -> str:
    return str(value.type) if isinstance(value, pa.Array) else str(value)


@pytest.mark.parametrize("column", CARRIED, ids=type_of)
def test_carried_along(column: pa.Array) -> None:
    check("SELECT a.x, b.x, a.id, b.id FROM s [RANGE 2us] a, s [RANGE 1us] b WHERE a.id <= b.id", column)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("column", ORDERED, ids=type_of)
def test_computed_with(column: pa.Array, use: str) -> None:
    check(USES[use], column)


@pytest.mark.parametrize("hash_bits", [0, 4])
@pytest.mark.parametrize("column", ORDERED, ids=type_of)
def test_joined_on_when_hashes_collide(column: pa.Array, hash_bits: int) -> None:
    other = pc.take(column, pa.array([3, 2, 1, 0]))
    streams = {
        name: pa.table({"ts": pa.array([1, 1, 2, 3], pa.timestamp("us")), "x": x, "id": range(4)})
        for name, x in (("a", column), ("b", other))
    }
    text = "SELECT a.id, b.id FROM a [UNBOUNDED], b [UNBOUNDED] WHERE a.x = b.x"
    assert_same_rows(braid.run(text, streams, hash_bits=hash_bits), oracle(text, streams))
