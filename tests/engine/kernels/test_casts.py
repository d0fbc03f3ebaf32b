"""Casts, value by value, with the meaning of Spark (ANSI mode off), and casts of keys to the type of their class."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from braid.engine.kernels.expression import compile_expression
from braid.model.expressions.expression import Call, Cast, Column, Literal
from tests.engine.kernels.conftest import INFINITY, LEAP, assert_values


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CAST(f AS STRING)", ["1.5", "NaN", None, "-0.0"]),
        ("CAST(h AS STRING)", ["0.1", "NaN", None, "-2.5"]),
        ("CAST(1e10 AS STRING)", ["1.0E10"] * 4),
        ("CAST(d AS STRING)", ["1.25", "-3.50", None, "99999999.99"]),
        ("CAST(0.0000001 AS STRING)", ["1E-7"] * 4),
        ("CAST(ts AS STRING)", ["2024-01-31 12:34:56.789012", "1969-12-31 23:59:59.5", None, "2024-02-29 00:00:00"]),
        ("CAST(q AS STRING)", ["true", "false", None, "true"]),
        ("CAST(z AS STRING)", ["ab", None, None, ""]),
        ("CAST(s AS INT)", [None, None, None, 12]),
        ("CAST(s AS DOUBLE)", [None, None, None, 12.0]),
        ("CAST(s AS DECIMAL(5, 1))", [None, None, None, Decimal("12.0")]),
        ("CAST('-128.9' AS TINYINT)", [-128] * 4),
        ("CAST('-129' AS TINYINT)", [None] * 4),
        ("CAST('+00000000000000000000000007' AS INT)", [7] * 4),
        ("CAST('9223372036854775807' AS BIGINT)", [2**63 - 1] * 4),
        ("CAST('9223372036854775808' AS BIGINT)", [None] * 4),
        ("CAST('1e400' AS DOUBLE)", [INFINITY] * 4),
        ("CAST(' -Infinity ' AS DOUBLE)", [-INFINITY] * 4),
        ("CAST('1e2' AS INT)", [None] * 4),
        ("CAST('.5' AS INT)", [0] * 4),
        ("CAST(' -.9 ' AS BIGINT)", [0] * 4),
        ("CAST('.' AS INT)", [0] * 4),
        ("CAST('+' AS INT)", [None] * 4),
        ("CAST(CAST(0 AS DECIMAL(18, 8)) AS STRING)", ["0E-8"] * 4),
        ("CAST(CAST('-0.0000001' AS DECIMAL(18, 8)) AS STRING)", ["-1.0E-7"] * 4),
        ("CAST(CAST('0.000001' AS DECIMAL(18, 8)) AS STRING)", ["0.00000100"] * 4),
        ("CAST('1e2' AS DECIMAL(5, 0))", [Decimal(100)] * 4),
        ("CAST('yes' AS BOOLEAN)", [True] * 4),
        ("CAST('maybe' AS BOOLEAN)", [None] * 4),
        ("CAST('2024-1-5' AS DATE)", [date(2024, 1, 5)] * 4),
        ("CAST('2024' AS DATE)", [date(2024, 1, 1)] * 4),
        ("CAST('2024-02-30' AS DATE)", [None] * 4),
        ("CAST('2024-01-05T01:02:03.5+01:00' AS TIMESTAMP)", [datetime(2024, 1, 5, 0, 2, 3, 500000)] * 4),
        ("CAST('2024-01-05 25:00:00' AS TIMESTAMP)", [None] * 4),
        ("CAST('2024-01-05 01:02' AS TIMESTAMP_LTZ)", [datetime(2024, 1, 5, 1, 2, tzinfo=UTC)] * 4),
        ("CAST(l AS INT)", [-1, 0, None, 5]),
        ("CAST(g AS BIGINT)", [0, 0, 1, 2**63 - 1]),
        ("CAST(g AS TINYINT)", [0, 0, 1, -1]),
        ("CAST(-1e30 AS INT)", [-(2**31)] * 4),
        ("CAST(-1.5 AS INT)", [-1] * 4),
        ("CAST(d AS INT)", [1, -3, None, 99999999]),
        ("CAST(d AS DECIMAL(5, 1))", [Decimal("1.3"), Decimal("-3.5"), None, None]),
        ("CAST(f AS DECIMAL(5, 1))", [Decimal("1.5"), None, None, Decimal("0.0")]),
        ("CAST(l AS DECIMAL(10, 0))", [None, None, None, Decimal(5)]),
        ("CAST(i AS DECIMAL(38, 30))", [Decimal("1." + "0" * 30), Decimal("-7." + "0" * 30), None, None]),
        ("CAST(u AS BIGINT)", [-1, 0, None, 5]),
        ("CAST(d AS TINYINT)", [1, -3, None, -1]),
        ("CAST(5000000000.5 AS INT)", [705032704] * 4),
        ("CAST(-1234567890123456789012345678.5 AS BIGINT)", [-7888470988696384334] * 4),
        ("CAST(ts AS TINYINT)", [None, -1, None, None]),
        ("CAST(ts AS INT)", [1706704496, -1, None, 1709164800]),
        ("CAST(ts + INTERVAL 100000 DAYS AS INT)", [None] * 4),
        ("CAST(ts + INTERVAL 100000 DAYS AS DOUBLE)", [10346704496.789012, 8639999999.5, None, 10349164800.0]),
        ("CAST(f AS BOOLEAN)", [True, True, None, False]),
        ("CAST(q AS INT)", [1, 0, None, 1]),
        ("CAST(ts AS DATE)", [date(2024, 1, 31), date(1969, 12, 31), None, date(2024, 2, 29)]),
        ("CAST(day AS TIMESTAMP)", [datetime(2024, 1, 31), datetime(1969, 12, 31), None, LEAP]),
        ("CAST(ts AS BIGINT)", [1706704496, -1, None, 1709164800]),
        ("CAST(ts AS DOUBLE)", [1706704496.789012, -0.5, None, 1709164800.0]),
        (
            "CAST(i AS TIMESTAMP)",
            [datetime(1970, 1, 1, 0, 0, 1), datetime(1969, 12, 31, 23, 59, 53), None, datetime(2038, 1, 19, 3, 14, 7)],
        ),
        ("CAST(g AS TIMESTAMP)", [datetime(1970, 1, 1), None, datetime(1970, 1, 1, 0, 0, 1), None]),
        ("CAST(n AS DATE)", [None] * 4),
        ("TRY_CAST(s AS INT)", [None, None, None, 12]),
        ("s::INT", [None, None, None, 12]),
        ("TO_DATE(ts)", [date(2024, 1, 31), date(1969, 12, 31), None, date(2024, 2, 29)]),
    ],
)
def test_casts(text: str, expected: list[Any]) -> None:
    assert_values(text, expected)


def evaluate(expression: Any, values: pa.Array) -> pa.Array:
    return compile_expression(expression, lambda column: values.type)({Column("t", "x"): values}, len(values))


@pytest.mark.parametrize(
    ("values", "type_", "expected"),
    [
        (pa.array([-1500, 1500, None], pa.timestamp("ns")), pa.timestamp("us"), [-2, 1, None]),
        (pa.array([-1, 1], pa.timestamp("ms", "Asia/Tokyo")), pa.timestamp("us", "UTC"), [-1000, 1000]),
        (pa.array([2**62, 1], pa.timestamp("s")), pa.timestamp("us"), [None, 1_000_000]),
        (pa.array([-1500], pa.duration("ns")), pa.duration("us"), [-2]),
        (pa.array([86_399_999], pa.date64()), pa.date32(), [0]),
        (pa.array([2**62, -(2**62), 0], pa.int64()).view(pa.date64()), pa.date32(), [None, None, 0]),
    ],
    ids=str,
)
def test_times_are_cast_to_microseconds_and_rounded_down(
    values: pa.Array, type_: pa.DataType, expected: list[int | None]
) -> None:
    result = evaluate(Cast(Column("t", "x"), type_), values)
    assert result.type == type_
    assert result.cast(pa.int32() if type_ == pa.date32() else pa.int64()).to_pylist() == expected


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (pa.dictionary(pa.int8(), pa.large_string()), pa.large_string()),
        (pa.string_view(), pa.string()),
        (pa.string_view(), pa.large_string()),
        (pa.binary_view(), pa.binary()),
        (pa.binary(2), pa.large_binary()),
        (pa.float16(), pa.float64()),
        (pa.uint64(), pa.decimal128(20, 0)),
        (pa.uint8(), pa.int64()),
        (pa.decimal128(5, 2), pa.decimal256(60, 30)),
        (pa.int64(), pa.decimal128(38, 18)),
    ],
    ids=str,
)
def test_a_cast_to_a_wider_type_keeps_the_values(source: pa.DataType, target: pa.DataType) -> None:
    sample = [b"ab", None] if "binary" in str(source) else ["ab", None] if "string" in str(source) else [3, None]
    if pa.types.is_decimal(source):
        sample = [Decimal("3.00"), None]
    result = evaluate(Cast(Column("t", "x"), target), pa.array(sample, source))
    assert result.type == target
    assert result.to_pylist() == sample


def test_timestamps_beyond_the_range_of_python() -> None:
    far = pa.array([2**62, -(2**62), 0], pa.timestamp("us"))
    column = Column("t", "x")
    assert evaluate(Cast(column, pa.string()), far).to_pylist() == [None, None, "1970-01-01 00:00:00"]
    assert evaluate(Call("greater", (column, Literal(datetime(1970, 1, 1), pa.timestamp("us")))), far).to_pylist() == [
        True,
        False,
        False,
    ]
