"""The types of expressions, and the types in which values are compared."""

import itertools

import pyarrow as pa
import pytest

from braid import Stream
from braid.engine.kernels import KERNELS
from braid.language import parse
from braid.model.expressions.expression import Call, Cast, Column, Literal
from braid.model.expressions.types import common_type, plain
from braid.model.expressions.typing import FUNCTIONS, TypeMismatch, can_cast, comparison_type, type_of
from braid.model.query import Output

US = pa.timestamp("us")
UTC = pa.timestamp("us", "UTC")
WORDS = pa.dictionary(pa.int32(), pa.string())

COMPARABLE = [
    (pa.int8(), pa.int32(), pa.int32()),
    (pa.int32(), pa.int64(), pa.int64()),
    (pa.uint8(), pa.int8(), pa.int16()),
    (pa.uint8(), pa.uint8(), pa.int16()),
    (pa.uint32(), pa.int8(), pa.int64()),
    (pa.uint64(), pa.uint64(), pa.decimal128(20, 0)),
    (pa.uint64(), pa.int64(), pa.decimal128(20, 0)),
    (pa.int32(), pa.float32(), pa.float64()),
    (pa.int64(), pa.float64(), pa.float64()),
    (pa.float32(), pa.float32(), pa.float32()),
    (pa.float16(), pa.float16(), pa.float32()),
    (pa.float32(), pa.float64(), pa.float64()),
    (pa.decimal128(10, 2), pa.float32(), pa.float64()),
    (pa.decimal128(10, 2), pa.int32(), pa.decimal128(12, 2)),
    (pa.decimal128(10, 2), pa.int64(), pa.decimal128(22, 2)),
    (pa.decimal128(10, 2), pa.decimal128(8, 5), pa.decimal128(13, 5)),
    (pa.decimal128(38, 0), pa.decimal128(38, 38), pa.decimal256(76, 38)),
    (pa.decimal256(76, 0), pa.decimal128(38, 38), pa.float64()),
    (pa.string(), pa.string(), pa.string()),
    (pa.string(), pa.string_view(), pa.string()),
    (pa.string(), WORDS, pa.string()),
    (WORDS, WORDS, pa.string()),
    (pa.string(), pa.large_string(), pa.large_string()),
    (pa.binary(), pa.binary(4), pa.binary()),
    (pa.binary(), pa.large_binary(), pa.large_binary()),
    (pa.date32(), pa.date64(), pa.date32()),
    (pa.date32(), pa.timestamp("s"), US),
    (pa.date32(), pa.timestamp("ns", "Asia/Tokyo"), UTC),
    (pa.timestamp("s"), pa.timestamp("ms"), US),
    (pa.timestamp("ns"), pa.timestamp("ns"), US),
    (pa.timestamp("us"), pa.timestamp("us", "Europe/Rome"), UTC),
    (pa.timestamp("us", "Asia/Tokyo"), pa.timestamp("us", "Europe/Rome"), UTC),
    (pa.duration("s"), pa.duration("ns"), pa.duration("us")),
    (pa.time32("s"), pa.time64("ns"), pa.time64("ns")),
    (pa.bool_(), pa.bool_(), pa.bool_()),
    (pa.null(), pa.int32(), pa.int32()),
    (pa.null(), WORDS, pa.string()),
    (pa.null(), pa.null(), pa.null()),
]


@pytest.mark.parametrize(("left", "right", "common"), COMPARABLE, ids=str)
def test_the_comparison_type_does_not_depend_on_the_order(
    left: pa.DataType, right: pa.DataType, common: pa.DataType
) -> None:
    assert comparison_type(left, right) == common
    assert comparison_type(right, left) == common


def test_a_comparison_type_is_its_own_comparison_type() -> None:
    """Otherwise keys that were cast to the type of their class would be compared in yet another type."""
    for _, _, common in COMPARABLE:
        assert comparison_type(common, common) == common
        assert plain(common) == common


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (pa.string(), pa.int32()),
        (pa.string(), US),
        (pa.string(), pa.bool_()),
        (pa.bool_(), pa.int32()),
        (US, pa.int64()),
        (US, pa.duration("us")),
        (pa.date32(), pa.int32()),
        (pa.string(), pa.binary()),
        (pa.time32("s"), US),
        (pa.list_(pa.int32()), pa.list_(pa.int32())),
        (pa.struct({"a": pa.int32()}), pa.null()),
        (pa.map_(pa.string(), pa.int32()), pa.string()),
    ],
    ids=str,
)
def test_types_that_cannot_be_compared(left: pa.DataType, right: pa.DataType) -> None:
    for first, second in ((left, right), (right, left)):
        with pytest.raises(TypeMismatch, match="compared"):
            comparison_type(first, second)


def test_every_function_has_a_typing_rule_and_a_kernel() -> None:
    assert set(KERNELS) == set(FUNCTIONS)


def test_a_type_mismatch_is_a_value_error_with_its_expression() -> None:
    argument = Column("s", "x")
    with pytest.raises(ValueError, match="LOWER needs a string, not int64") as raised:
        type_of(Call("lower", (argument,)), lambda column: pa.int64())
    assert isinstance(raised.value, TypeMismatch)
    assert raised.value.expression == argument


def test_unknown_functions_and_wrong_numbers_of_arguments() -> None:
    with pytest.raises(TypeMismatch, match="there is no function 'nope'"):
        type_of(Call("nope", ()), lambda column: pa.int64())
    with pytest.raises(TypeMismatch, match="SUBSTRING takes 2 to 3 arguments, not 1"):
        type_of(Call("substring", (Literal("x", pa.string()),)), lambda column: pa.int64())


def test_common_types_of_branches() -> None:
    nested = pa.list_(pa.int32())
    assert common_type([pa.null(), nested, nested]) == nested
    assert common_type([pa.int32(), pa.null(), pa.decimal128(3, 1)]) == pa.decimal128(11, 1)
    assert common_type([WORDS, WORDS]) == pa.string()
    for members in ([nested, pa.list_(pa.int64())], [pa.int32(), pa.string()], [pa.bool_(), pa.int8()]):
        with pytest.raises(TypeMismatch, match="have no type in common"):
            common_type(members)


def test_a_cast_has_its_target_type_or_is_refused() -> None:
    kinds = [pa.bool_(), pa.int64(), pa.decimal128(5, 2), pa.float32(), pa.string(), pa.binary(), pa.date32(), US]
    for source, target in itertools.product(kinds, kinds):
        cast = Cast(Column("s", "x"), target)
        if can_cast(source, target):
            assert type_of(cast, lambda column, source=source: source) == target
        else:
            with pytest.raises(TypeMismatch, match="cannot be cast to"):
                type_of(cast, lambda column, source=source: source)
    assert not can_cast(pa.date32(), pa.int32())
    assert not can_cast(pa.bool_(), US)
    assert not can_cast(pa.list_(pa.int32()), pa.string())


SCHEMA = pa.schema(
    {
        "ts": US,
        "tz": pa.timestamp("ns", "Asia/Tokyo"),
        "b": pa.int8(),
        "i": pa.int32(),
        "l": pa.int64(),
        "u": pa.uint64(),
        "f": pa.float32(),
        "g": pa.float64(),
        "d": pa.decimal128(10, 2),
        "e": pa.decimal128(38, 10),
        "s": WORDS,
        "q": pa.bool_(),
        "day": pa.date32(),
    }
)


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("s", WORDS),
        ("b + b", pa.int8()),
        ("b + i", pa.int32()),
        ("i * l", pa.int64()),
        ("i + f", pa.float64()),
        ("f + f", pa.float32()),
        ("u + 1", pa.decimal128(21, 0)),
        ("d + d", pa.decimal128(11, 2)),
        ("d + i", pa.decimal128(13, 2)),
        ("d + 1", pa.decimal128(11, 2)),
        ("d * d", pa.decimal128(21, 4)),
        ("d * 2", pa.decimal128(12, 2)),
        ("e + e", pa.decimal128(38, 9)),
        ("e * e", pa.decimal128(38, 6)),
        ("d % e", pa.decimal128(18, 10)),
        ("d + g", pa.float64()),
        ("d / d", pa.float64()),
        ("i / 2", pa.float64()),
        ("i DIV 2", pa.int64()),
        ("-d", pa.decimal128(10, 2)),
        ("NULL + 1", pa.int32()),
        ("ts - ts", pa.duration("us")),
        ("ts - tz", pa.duration("us")),
        ("tz + INTERVAL 1 HOUR", UTC),
        ("day + 1", pa.date32()),
        ("day + INTERVAL 1 DAY", pa.date32()),
        ("day + INTERVAL 1 HOUR", US),
        ("INTERVAL 1 DAY * i", pa.duration("us")),
        ("INTERVAL 1 DAY / 2", pa.duration("us")),
        ("i = l", pa.bool_()),
        ("CASE WHEN q THEN i ELSE d END", pa.decimal128(12, 2)),
        ("COALESCE(NULL, b, i)", pa.int32()),
        ("GREATEST(f, i)", pa.float64()),
        ("ROUND(d, 1)", pa.decimal128(10, 1)),
        ("ROUND(d)", pa.decimal128(9, 0)),
        ("ROUND(i)", pa.int32()),
        ("FLOOR(g)", pa.int64()),
        ("CEIL(d)", pa.decimal128(9, 0)),
        ("SIGN(d)", pa.float64()),
        ("ABS(b)", pa.int8()),
        ("SQRT(i)", pa.float64()),
        ("LOWER(s)", pa.string()),
        ("LENGTH(s)", pa.int32()),
        ("s || i", pa.string()),
        ("YEAR(day)", pa.int32()),
        ("EXTRACT(SECOND FROM ts)", pa.decimal128(8, 6)),
        ("DATE_TRUNC('hour', day)", US),
        ("DATE_TRUNC('hour', tz)", UTC),
        ("UNIX_MILLIS(ts)", pa.int64()),
        ("CAST(i AS DECIMAL)", pa.decimal128(10, 0)),
        ("CAST(i AS DECIMAL(5))", pa.decimal128(5, 0)),
        ("CAST(s AS VARCHAR(5))", pa.string()),
    ],
)
def test_types_of_expressions(text: str, type_: pa.DataType) -> None:
    query = parse(f"SELECT {text} AS x FROM s [NOW]", {"s": Stream("s", SCHEMA, "ts")})
    output = query.outputs[0]
    assert isinstance(output, Output)
    assert type_of(output.expression, lambda column: SCHEMA.field(column.name).type) == type_
