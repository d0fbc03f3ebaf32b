"""Columns of every Arrow type: selected, joined on, compared, and used to order rows with equal times."""

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import braid
from braid.testing import assert_same_rows, oracle
from braid.testing.encoding import gather

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
STORED = [
    pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"a" * 16, b"b" * 16, None, b"a" * 16], pa.binary(16))),
    pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"x": 1}', "2", None, '{"x": 1}'])),
    pa.ExtensionArray.from_storage(pa.json_(pa.string_view()), pa.array(["1", "2", None, "1"], pa.string_view())),
    pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0, None, 1], pa.int8())),
    pa.ExtensionArray.from_storage(pa.opaque(pa.int32(), "number", "braid"), pa.array(NUMBERS, pa.int32())),
]
LAID_OUT = [
    pa.array(TEXTS, pa.string_view()),
    pa.array(BYTES, pa.binary_view()),
    pa.RunEndEncodedArray.from_arrays(pa.array([1, 2, 3, 4], pa.int32()), pa.array(NUMBERS)),
    pa.RunEndEncodedArray.from_arrays(pa.array([1, 2, 3, 4], pa.int16()), pa.array(TEXTS)),
    pa.array([Decimal(100), Decimal(200), None, Decimal(100)], pa.decimal128(5, -2)),
    *(pa.array(DECIMALS, kind) for kind in (pa.decimal32(5, 1), pa.decimal64(15, 1))),
]
ORDERED += STORED + LAID_OUT
EQUATED = [
    pa.array([[1], [1, None], None, [1]]),
    pa.array([["a", ":"], ["a:"], [None], ["a", ":"]], pa.large_list(pa.string())),
    pa.array([["a"], ["b"], None, ["a"]], pa.list_(pa.string_view())),
    pa.array([["a"], ["b"], None, ["a"]], pa.large_list(pa.string_view())),
    pa.array([["a"], ["b"], None, ["a"]], pa.list_(pa.string_view(), 1)),
    pa.array([[0.0], [float("nan")], [-0.0], [-float("nan")]]),
    pa.array([[1], [2], None, [None]], pa.list_(pa.int8(), 1)),
    pa.array([[1], [2, None], None, []], pa.list_view(pa.int8())),
    pa.array([[], [[]], None, [[], None]], pa.list_(pa.large_list(pa.date32()))),
    pa.array([{"x": 1, "y": ["a"]}, {"x": None, "y": None}, None, {"x": 1, "y": ["a"]}]),
    pa.array([{"x": "1"}, {"x": None}, None, {"x": "1"}], pa.struct({"x": pa.string_view()})),
    pa.array([{}, None, {}, {}], pa.struct([])),
    pa.StructArray.from_arrays([STORED[0], pa.array(DECIMALS, pa.decimal128(30, 2))], ["u", "d"]),
    pa.ListArray.from_arrays(pa.array([0, 1, 2, 2, 3], pa.int32()), STORED[0].take(pa.array([0, 1, 0]))),
    pa.ExtensionArray.from_storage(
        pa.fixed_shape_tensor(pa.int32(), [2]), pa.array([[1, 2], [2, 3], None, [1, 2]], pa.list_(pa.int32(), 2))
    ),
]
"""Types that can be compared for equality but have no order."""
CARRIED = [
    *ORDERED,
    *EQUATED,
    pa.array(DECIMALS, pa.decimal256(60, 2)),
    pa.nulls(4),
    pa.array([[("a", "b")], [], None, [("a", None)]], pa.map_(pa.string_view(), pa.string_view())),
    pa.array([[1], [2, None], None, []]),
    pa.array([[1], [2, None], None, []], pa.large_list(pa.int8())),
    pa.array([[("a", 1)], [], None, [("a", None)]], pa.map_(pa.string(), pa.int64())),
    pa.array([(1, 2, 3), (0, 0, 1), None, (1, 2, 3)], pa.month_day_nano_interval()),
]
USES = {
    "equal": "SELECT a.id, b.id FROM s [RANGE 3us] a, s [RANGE 3us] b WHERE a.x = b.x",
    "less": "SELECT a.id, b.id FROM s [RANGE 3us] a, s [RANGE 3us] b WHERE a.x < b.x",
    "unequal": "SELECT a.id, b.id FROM s [RANGE 3us] a, s [RANGE 3us] b WHERE a.x <> b.x OR a.id = b.id",
    "among": "SELECT a.id, b.id FROM s [RANGE 3us] a, s [RANGE 3us] b WHERE a.x IN (b.x, a.x)",
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
def test_a_selected_column_keeps_its_values(column: pa.Array) -> None:
    check("SELECT a.x, b.x, a.id, b.id FROM s [RANGE 2us] a, s [RANGE 1us] b WHERE a.id <= b.id", column)


@pytest.mark.parametrize("use", ["equal", "less", "ties", "partitions"])
@pytest.mark.parametrize("column", ORDERED, ids=type_of)
def test_types_with_an_order(column: pa.Array, use: str) -> None:
    check(USES[use], column)


@pytest.mark.parametrize("use", ["equal", "partitions", "unequal", "among"])
@pytest.mark.parametrize("column", EQUATED, ids=type_of)
def test_types_without_an_order(column: pa.Array, use: str) -> None:
    check(USES[use], column)


@pytest.mark.parametrize("hash_bits", [0, 4])
@pytest.mark.parametrize("column", [*ORDERED, *EQUATED], ids=type_of)
def test_joins_with_hash_collisions(column: pa.Array, hash_bits: int) -> None:
    other = gather(pa.chunked_array([column]), pa.array([3, 2, 1, 0]))
    streams = {
        name: pa.table({"ts": pa.array([1, 1, 2, 3], pa.timestamp("us")), "x": x, "id": range(4)})
        for name, x in (("a", column), ("b", other))
    }
    text = "SELECT a.id, b.id FROM a [UNBOUNDED], b [UNBOUNDED] WHERE a.x = b.x"
    assert_same_rows(braid.run(text, streams, hash_bits=hash_bits), oracle(text, streams))


UNION = pa.UnionArray.from_sparse(pa.array([0, 1, 0, 1], pa.int8()), [pa.array([1, 2, 3, 4]), pa.array(list("abcd"))])
MAP = pa.array([[("a", 1)], [], None, []], pa.map_(pa.string(), pa.int64()))
INTERVAL = pa.array([(1, 2, 3), (0, 0, 1), None, (1, 2, 3)], pa.month_day_nano_interval())
ENCODED_INSIDE = pa.StructArray.from_arrays([LAID_OUT[2]], ["r"])
VIEWS_INSIDE = pa.array([["a"], [], None, ["b"]], pa.list_view(pa.string_view()))
CARRY = "SELECT a.x FROM s [NOW] a"


@pytest.mark.parametrize(
    ("column", "text", "message"),
    [
        (UNION, CARRY, "column 'a.x' is a union or holds one, which cannot be kept"),
        (UNION, USES["equal"], "sparse_union.*, and values of that type cannot be compared"),
        (UNION, USES["ties"], "stream 's' cannot be counted by rows: its column 'x' is a union"),
        (pa.StructArray.from_arrays([UNION], ["u"]), USES["ties"], "its column 'x' is a union"),
        (MAP, USES["equal"], "a.x is map<string, int64>, and values of that type cannot be compared"),
        (MAP, USES["partitions"], "rows cannot be partitioned by 'x', which is map<string, int64>"),
        (INTERVAL, USES["equal"], "month_day_nano_interval, and values of that type cannot be compared"),
        (EQUATED[0], USES["less"], "a.x is list<item: int64>, and values of that type have no order"),
        (EQUATED[0], "SELECT a.x FROM s [NOW] a WHERE a.x = 3", r"cannot compare a.x \(list<item: int64>\) with 3"),
        (
            ENCODED_INSIDE,
            CARRY,
            "column 'x' of stream 's' is struct<r: .*>; decode the run-end encoded values inside it",
        ),
        (VIEWS_INSIDE, CARRY, "column 'x' of stream 's' is list_view<.*>; cast it to a list of large_string"),
    ],
    ids=str,
)
def test_unsupported_types_are_refused_before_any_row_is_read(column: pa.Array, text: str, message: str) -> None:
    rows = pa.table({"ts": pa.array([1, 1, 2, 3], pa.timestamp("us")), "x": column, "id": range(4)})
    with pytest.raises(braid.BraidError, match=message):
        braid.run(text, {"s": rows.slice(0, 0)})


def test_a_dictionary_gets_indices_wide_enough_for_all_batches() -> None:
    """Each batch may have its own dictionary, so that all values together may need wider indices."""
    encoded = [pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), [str(n)]) for n in range(300)]
    batches = [
        pa.record_batch({"ts": pa.array([n], pa.timestamp("us")), "x": column}) for n, column in enumerate(encoded)
    ]
    result = braid.run("SELECT x FROM s [NOW]", {"s": batches}, batch_rows=50)
    assert result.schema.field("x").type == pa.dictionary(pa.int32(), pa.string())
    assert result.column("x").to_pylist() == [str(n) for n in range(300)]
