"""Expressions on Arrow arrays, value by value, with the meaning of Spark (ANSI mode off)."""

import math
import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from braid import QueryError, Stream
from braid.engine.kernels.expression import Compiled, compile_expression
from braid.language import parse
from braid.model.expressions.expression import Call, Cast, Column, Literal
from braid.model.query import Output

NAN, INFINITY = float("nan"), float("inf")
NOON = datetime(2024, 1, 31, 12, 34, 56, 789012)
BEFORE = datetime(1969, 12, 31, 23, 59, 59, 500000)
LEAP = datetime(2024, 2, 29)

TABLE = pa.record_batch(
    {
        "ts": pa.array([NOON, BEFORE, None, LEAP], pa.timestamp("us")),
        "tz": pa.array([NOON, BEFORE, None, LEAP], pa.timestamp("ns", "America/New_York")),
        "i": pa.array([1, -7, None, 2**31 - 1], pa.int32()),
        "j": pa.array([2, 3, 0, -1], pa.int32()),
        "l": pa.array([2**63 - 1, -(2**63), None, 5], pa.int64()),
        "b": pa.array([127, -128, None, 3], pa.int8()),
        "u": pa.array([2**64 - 1, 0, None, 5], pa.uint64()),
        "f": pa.array([1.5, NAN, None, -0.0]),
        "g": pa.array([0.0, NAN, 1.0, INFINITY]),
        "h": pa.array([0.1, NAN, None, -2.5], pa.float32()),
        "d": pa.array([Decimal("1.25"), Decimal("-3.50"), None, Decimal("99999999.99")], pa.decimal128(10, 2)),
        "e": pa.array([Decimal("0.5"), Decimal("2.0"), Decimal(1), Decimal(0)], pa.decimal128(38, 10)),
        "s": pa.array(["abc", "Straße", None, " 12 "]),
        "p": pa.array(["a%", "%ß_", None, "_12%"]),
        "v": pa.array(["x", "y", "x", None]).dictionary_encode(),
        "w": pa.array(["a", "b", "c", None], pa.string_view()),
        "q": pa.array([True, False, None, True]),
        "day": pa.array([date(2024, 1, 31), date(1969, 12, 31), None, date(2024, 2, 29)]),
        "z": pa.array([b"ab", b"\xff", None, b""]),
        "k": pa.array([[1], None, [], [2]]),
        "n": pa.nulls(4),
        "du": pa.array([5, -5, None, 10**6], pa.duration("ns")),
    }
)
STREAMS = {"t": Stream("t", TABLE.schema, "ts")}


def column_type(column: Column) -> pa.DataType:
    return TABLE.schema.field(column.name).type


def compiled(text: str) -> Compiled:
    output = parse(f"SELECT {text} AS x FROM t [NOW]", STREAMS).outputs[0]
    assert isinstance(output, Output)
    return compile_expression(output.expression, column_type)


def run(text: str) -> pa.Array:
    """The values, after checks that hold for every expression."""
    expression = compiled(text)
    columns = {column: TABLE.column(column.name) for column in expression.columns}
    result = expression(columns, 4)
    assert result.type == expression.type
    assert len(result) == 4
    result.validate(full=True)
    pieces = [
        expression({column: values.slice(start, size) for column, values in columns.items()}, size)
        for start, size in ((0, 1), (1, 0), (1, 3))
    ]
    assert all(piece.type == expression.type for piece in pieces)
    assert str(pa.concat_arrays(pieces)) == str(result), "values depend on how rows are batched"
    return result


def same(left: Any, right: Any) -> bool:
    """Equality that tells -0.0 from 0.0 and takes NaN for NaN."""
    if isinstance(left, float) and isinstance(right, float):
        return (math.isnan(left) and math.isnan(right)) or (
            left == right and math.copysign(1, left) == math.copysign(1, right)
        )
    return type(left) is type(right) and left == right


def check(text: str, expected: list[Any]) -> None:
    values = run(text).to_pylist()
    assert all(map(same, values, expected)), values
    assert len(values) == len(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i + 1", [2, -6, None, -(2**31)]),
        ("l + 1", [-(2**63), -(2**63) + 1, None, 6]),
        ("b + b", [-2, 0, None, 6]),
        ("-b", [-127, -128, None, -3]),
        ("ABS(l)", [2**63 - 1, -(2**63), None, 5]),
        ("i / j", [0.5, -7 / 3, None, -2147483647.0]),
        ("j / 0", [None] * 4),
        ("g / 0", [None] * 4),
        ("i % j", [1, -1, None, 0]),
        ("j % 0", [None] * 4),
        ("l % -1", [0, 0, None, 0]),
        ("-5 % 3", [-2] * 4),
        ("i DIV j", [0, -2, None, -(2**31) + 1]),
        ("l DIV -1", [-(2**63) + 1, -(2**63), None, -5]),
        ("i DIV 0", [None] * 4),
        ("-7 DIV 2", [-3] * 4),
        ("f % g", [None, NAN, None, -0.0]),
        ("5.5e0 % -2", [1.5] * 4),
        ("u + 1", [Decimal(2**64), Decimal(1), None, Decimal(6)]),
        ("d * 2", [Decimal("2.50"), Decimal("-7.00"), None, Decimal("199999999.98")]),
        ("d - 1", [Decimal("0.25"), Decimal("-4.50"), None, Decimal("99999998.99")]),
        ("d * e", [Decimal("0.625000"), Decimal("-7.000000"), None, Decimal("0.000000")]),
        ("d % e", [Decimal("0.2500000000"), Decimal("-1.5000000000"), None, None]),
        ("d DIV e", [2, -1, None, None]),
        ("d / e", [2.5, -1.75, None, None]),
        ("e * 1e0", [0.5, 2.0, 1.0, 0.0]),
        ("CAST(99999999999999999999999999999999999999 AS DECIMAL(38, 0)) + 1", [None] * 4),
        (
            "0.0000001 * 0.00000001 + e",
            [Decimal("0.500000000"), Decimal("2.000000000"), Decimal("1.000000000"), Decimal("0E-9")],
        ),
    ],
)
def test_arithmetic(text: str, expected: list[Any]) -> None:
    check(text, expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i = j", [False, False, None, False]),
        ("f = f", [True, True, None, True]),
        ("f = g", [False, True, None, False]),
        ("f <> g", [True, False, None, True]),
        ("f < g", [False, False, None, True]),
        ("f <= g", [False, True, None, True]),
        ("g > f", [False, False, None, True]),
        ("g >= f", [False, True, None, True]),
        ("g > 1e300", [False, True, False, True]),
        ("f = 0", [False, False, None, True]),
        ("f <=> g", [False, True, False, False]),
        ("n = 1", [None] * 4),
        ("n <=> n", [True] * 4),
        ("n <=> i", [False, False, True, False]),
        ("i IS DISTINCT FROM 1", [False, True, True, True]),
        ("u = l", [False, False, None, True]),
        ("l = 9.223372036854775807e18", [True, False, None, False]),
        ("l > 9223372036854775806", [True, False, None, False]),
        ("h = 0.1", [False, False, None, False]),
        ("h = 0.1F", [True, False, None, False]),
        ("d > 1", [True, False, None, True]),
        ("d = e", [False, False, None, False]),
        ("v = w", [False, False, False, None]),
        ("v = 'x'", [True, False, True, None]),
        ("s < 'b'", [True, True, None, True]),
        ("s > 'Strasse'", [True, True, None, False]),
        ("z > X'FE'", [False, True, None, False]),
        ("q > FALSE", [True, False, None, True]),
        ("ts = tz", [True, True, None, True]),
        ("day < ts", [True, True, None, False]),
        ("ts > '2024-01-31 12:34:56'", [True, False, None, True]),
        ("du < INTERVAL 1 SECOND", [True, True, None, True]),
        ("i = '1.0'", [True, False, None, False]),
        ("q AND n", [None, False, None, None]),
        ("q OR NULL", [True, None, None, True]),
        ("NOT q", [False, True, None, False]),
        ("q IS TRUE", [True, False, False, True]),
        ("q IS NOT FALSE", [True, False, True, True]),
        ("i IN (1, NULL)", [True, None, None, None]),
        ("i NOT IN (1, 2)", [False, True, None, True]),
        ("f IN (0.0, 1.5)", [True, False, None, True]),
        ("f IN (CAST('NaN' AS DOUBLE), 7)", [False, True, None, False]),
        ("i IN (j, 1)", [True, False, None, False]),
        ("d IN (1.25, 7)", [True, False, None, False]),
        ("i BETWEEN 0 AND 10", [True, False, None, False]),
        ("i NOT BETWEEN 0 AND 10", [False, True, None, True]),
        ("k IS NULL", [False, True, False, False]),
    ],
)
def test_comparisons_and_logic(text: str, expected: list[Any]) -> None:
    check(text, expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CASE WHEN i > 0 THEN 'pos' WHEN i < 0 THEN 'neg' END", ["pos", "neg", None, "pos"]),
        (
            "CASE i WHEN 1 THEN 1 WHEN -7 THEN 2.5 ELSE 0 END",
            [Decimal("1.0"), Decimal("2.5"), Decimal("0.0"), Decimal("0.0")],
        ),
        ("IF(q, i, l)", [1, -(2**63), None, 2**31 - 1]),
        ("IF(q, k, NULL)", [[1], None, None, [2]]),
        ("COALESCE(i, j, 5)", [1, -7, 0, 2**31 - 1]),
        ("COALESCE(n, n)", [None] * 4),
        ("NVL(s, 'none')", ["abc", "Straße", "none", " 12 "]),
        ("NULLIF(i, 1)", [None, -7, None, 2**31 - 1]),
        ("GREATEST(i, j, NULL)", [2, 3, 0, 2**31 - 1]),
        ("GREATEST(f, g)", [1.5, NAN, 1.0, INFINITY]),
        ("LEAST(f, g)", [0.0, NAN, 1.0, -0.0]),
        ("LEAST(g, 5e0)", [0.0, 5.0, 1.0, 5.0]),
        ("LEAST(s, 'b')", ["abc", "Straße", "b", " 12 "]),
        ("GREATEST(q, FALSE)", [True, False, False, True]),
        ("SIGN(d)", [1.0, -1.0, None, 1.0]),
        ("ROUND(f)", [2.0, NAN, None, -0.0]),
        ("ROUND(2.675e0, 2)", [2.68] * 4),
        ("ROUND(-2.5e0)", [-3.0] * 4),
        ("ROUND(1e308, 100)", [1e308] * 4),
        ("ROUND(d, 1)", [Decimal("1.3"), Decimal("-3.5"), None, Decimal("100000000.0")]),
        ("ROUND(l, -2)", [2**63 - 8, -(2**63) + 8, None, 0]),
        ("FLOOR(f)", [1, 0, None, 0]),
        ("CEIL(g)", [0, 0, 1, 2**63 - 1]),
        ("CEIL(d)", [Decimal(2), Decimal(-3), None, Decimal(100000000)]),
        ("FLOOR(d)", [Decimal(1), Decimal(-4), None, Decimal(99999999)]),
        ("SQRT(i)", [1.0, NAN, None, math.sqrt(2**31 - 1)]),
        ("POWER(j, 2)", [4.0, 9.0, 0.0, 1.0]),
        ("EXP(j)", [math.exp(2), math.exp(3), 1.0, math.exp(-1)]),
        ("LN(j)", [math.log(2), math.log(3), None, None]),
        ("LOG10(j)", [math.log10(2), math.log10(3), None, None]),
        ("LOG(1, j)", [INFINITY, INFINITY, None, None]),
        ("l DIV 0.1", [-10, 0, None, 50]),
        ("CAST(POWER(1, g) AS STRING)", ["1.0", "NaN", "1.0", "NaN"]),
        ("POWER(-1, CAST('NaN' AS DOUBLE)) = CAST('NaN' AS DOUBLE)", [True] * 4),
        ("LOG(2, j)", [1.0, math.log(3) / math.log(2), None, None]),
    ],
)
def test_choices_and_numbers(text: str, expected: list[Any]) -> None:
    check(text, expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s LIKE 'a%'", [True, False, None, False]),
        ("s LIKE '%ß%'", [False, True, None, False]),
        ("s LIKE '%e'", [False, True, None, False]),
        ("s LIKE 'a_c'", [True, False, None, False]),
        ("s LIKE 'Stra_e'", [False, True, None, False]),
        ("s LIKE 'a%c'", [True, False, None, False]),
        ("s LIKE '%'", [True, True, None, True]),
        ("s LIKE ''", [False, False, None, False]),
        ("s NOT LIKE 'abc'", [False, True, None, True]),
        ("s LIKE NULL", [None] * 4),
        ("s LIKE p", [True, True, None, True]),
        ("'a%b' LIKE 'a\\%b'", [True] * 4),
        ("'axb' LIKE 'a\\%b'", [False] * 4),
        ("'a%b' LIKE 'a!%b' ESCAPE '!'", [True] * 4),
        ("'a.b' LIKE 'a.b'", [True] * 4),
        ("'axb' LIKE '_.b'", [False] * 4),
        ("'a\nb' LIKE 'a_b'", [True] * 4),
        ("s ILIKE 'A_C'", [True, False, None, False]),
        ("s RLIKE '^[a-z]+$'", [True, False, None, False]),
        ("s RLIKE 'b'", [True, False, None, False]),
        (r"s RLIKE r'\d+'", [False, False, None, True]),
        ("s RLIKE ('[' || w)", [None, None, None, None]),
        ("LOWER(s)", ["abc", "straße", None, " 12 "]),
        ("UPPER(s)", ["ABC", "STRASSE", None, " 12 "]),
        ("LENGTH(s)", [3, 6, None, 4]),
        ("LENGTH(z)", [2, 1, None, 0]),
        ("TRIM(s)", ["abc", "Straße", None, "12"]),
        ("LTRIM(s)", ["abc", "Straße", None, "12 "]),
        ("RTRIM(s)", ["abc", "Straße", None, " 12"]),
        ("TRIM(BOTH 'ac' FROM s)", ["b", "Straße", None, " 12 "]),
        ("TRIM(LEADING w FROM s)", ["bc", "Straße", None, None]),
        ("SUBSTRING(s, 2)", ["bc", "traße", None, "12 "]),
        ("SUBSTRING(s, 0, 2)", ["ab", "St", None, " 1"]),
        ("SUBSTRING(s, -2, 1)", ["b", "ß", None, "2"]),
        ("SUBSTRING(s, -5, 3)", ["a", "tra", None, " 1"]),
        ("SUBSTRING(s, -2, 5)", ["bc", "ße", None, "2 "]),
        ("SUBSTRING(s, 2, -1)", ["", "", None, ""]),
        ("SUBSTRING(s, 9)", ["", "", None, ""]),
        ("SUBSTRING(s, j, 2)", ["bc", "ra", None, " "]),
        ("CONCAT(s, '-', i)", ["abc-1", "Straße--7", None, " 12 -2147483647"]),
        ("w || v", ["ax", "by", "cx", None]),
        ("REPLACE(s, 'b', 'XX')", ["aXXc", "Straße", None, " 12 "]),
        ("REPLACE(s, 'b')", ["ac", "Straße", None, " 12 "]),
        ("REPLACE(s, '', 'X')", ["abc", "Straße", None, " 12 "]),
        ("REPLACE(s, w, 'Q')", ["Qbc", "Straße", None, None]),
        ("STARTSWITH(s, 'a')", [True, False, None, False]),
        ("STARTSWITH(s, w)", [True, False, None, None]),
        ("ENDSWITH(s, 'ße')", [False, True, None, False]),
        ("CONTAINS(s, 'b')", [True, False, None, False]),
    ],
)
def test_texts(text: str, expected: list[Any]) -> None:
    check(text, expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("YEAR(ts)", [2024, 1969, None, 2024]),
        ("MONTH(day)", [1, 12, None, 2]),
        ("DAY(tz)", [31, 31, None, 29]),
        ("HOUR(tz)", [12, 23, None, 0]),
        ("MINUTE(ts)", [34, 59, None, 0]),
        ("SECOND(ts)", [56, 59, None, 0]),
        ("QUARTER(ts)", [1, 4, None, 1]),
        ("DAYOFWEEK(ts)", [4, 4, None, 5]),
        ("DAYOFYEAR(day)", [31, 365, None, 60]),
        ("WEEKOFYEAR(day)", [5, 1, None, 9]),
        ("EXTRACT(SECOND FROM ts)", [Decimal("56.789012"), Decimal("59.500000"), None, Decimal("0.000000")]),
        ("DATE_TRUNC('month', ts)", [datetime(2024, 1, 1), datetime(1969, 12, 1), None, datetime(2024, 2, 1)]),
        ("DATE_TRUNC('week', day)", [datetime(2024, 1, 29), datetime(1969, 12, 29), None, datetime(2024, 2, 26)]),
        ("DATE_TRUNC('HOUR', ts)", [datetime(2024, 1, 31, 12), datetime(1969, 12, 31, 23), None, LEAP]),
        ("UNIX_SECONDS(ts)", [1706704496, -1, None, 1709164800]),
        ("UNIX_MILLIS(tz)", [1706704496789, -500, None, 1709164800000]),
        ("UNIX_TIMESTAMP(ts)", [1706704496, 0, None, 1709164800]),
        ("UNIX_TIMESTAMP(COALESCE(ts, tz))", [1706704496, 0, None, 1709164800]),
        ("UNIX_TIMESTAMP(ts - INTERVAL 1 SECOND)", [1706704495, -1, None, 1709164799]),
        ("INTERVAL 1 DAY * l", [None, None, None, timedelta(days=5)]),
        ("j * INTERVAL 1 SECOND", [timedelta(seconds=count) for count in (2, 3, 0, -1)]),
        ("INTERVAL 1 DAY * 1e300", [None] * 4),
        (
            "ts - day",
            [timedelta(hours=12, minutes=34, seconds=56.789012), timedelta(seconds=86399.5), None, timedelta(0)],
        ),
        ("ts - tz", [timedelta(0), timedelta(0), None, timedelta(0)]),
        (
            "ts + INTERVAL 1 DAY",
            [
                datetime(2024, 2, 1, 12, 34, 56, 789012),
                datetime(1970, 1, 1, 23, 59, 59, 500000),
                None,
                datetime(2024, 3, 1),
            ],
        ),
        (
            "ts - INTERVAL '0.5' SECOND",
            [
                datetime(2024, 1, 31, 12, 34, 56, 289012),
                datetime(1969, 12, 31, 23, 59, 59),
                None,
                datetime(2024, 2, 28, 23, 59, 59, 500000),
            ],
        ),
        ("day + 1", [date(2024, 2, 1), date(1970, 1, 1), None, date(2024, 3, 1)]),
        ("day - j", [date(2024, 1, 29), date(1969, 12, 28), None, date(2024, 3, 1)]),
        ("day + INTERVAL 1 DAY", [date(2024, 2, 1), date(1970, 1, 1), None, date(2024, 3, 1)]),
        (
            "INTERVAL 1 HOUR + day",
            [datetime(2024, 1, 31, 1), datetime(1969, 12, 31, 1), None, datetime(2024, 2, 29, 1)],
        ),
        ("INTERVAL 1 HOUR * j", [timedelta(hours=2), timedelta(hours=3), timedelta(0), timedelta(hours=-1)]),
        ("INTERVAL 1 HOUR / j", [timedelta(minutes=30), timedelta(minutes=20), None, timedelta(hours=-1)]),
        ("INTERVAL 1 HOUR * 1.5e0", [timedelta(minutes=90)] * 4),
        ("1.5 * INTERVAL 1 HOUR", [timedelta(minutes=90)] * 4),
        ("-du", [timedelta(0), timedelta(microseconds=1), None, timedelta(microseconds=-1000)]),
        ("ABS(INTERVAL -5 SECONDS)", [timedelta(seconds=5)] * 4),
    ],
)
def test_times(text: str, expected: list[Any]) -> None:
    check(text, expected)


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
    check(text, expected)


def test_a_column_alone_is_passed_on_as_it_is() -> None:
    for name in ("v", "w", "k", "u", "tz", "du"):
        assert run(name).equals(TABLE.column(name))


def test_columns_are_listed_once_and_constants_need_none() -> None:
    assert compiled("i + j * i").columns == (Column("t", "i"), Column("t", "j"))
    constant = compiled("1 + 1")
    assert constant.columns == ()
    assert constant({}, 3).to_pylist() == [2, 2, 2]
    assert constant({}, 0).to_pylist() == []


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
def test_keys_of_time_are_brought_to_microseconds_rounded_down(
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
def test_keys_of_other_types_keep_their_values(source: pa.DataType, target: pa.DataType) -> None:
    sample = [b"ab", None] if "binary" in str(source) else ["ab", None] if "string" in str(source) else [3, None]
    if pa.types.is_decimal(source):
        sample = [Decimal("3.00"), None]
    result = evaluate(Cast(Column("t", "x"), target), pa.array(sample, source))
    assert result.type == target
    assert result.to_pylist() == sample


def test_dates_beyond_what_python_knows() -> None:
    far = pa.array([2**62, -(2**62), 0], pa.timestamp("us"))
    column = Column("t", "x")
    assert evaluate(Cast(column, pa.string()), far).to_pylist() == [None, None, "1970-01-01 00:00:00"]
    assert evaluate(Call("greater", (column, Literal(datetime(1970, 1, 1), pa.timestamp("us")))), far).to_pylist() == [
        True,
        False,
        False,
    ]


FUNCTIONS_OF_ONE = [
    *(
        "abs",
        "sign",
        "round",
        "floor",
        "ceil",
        "sqrt",
        "exp",
        "ln",
        "log10",
        "lower",
        "upper",
        "length",
        "trim",
        "ltrim",
    ),
    *("rtrim", "year", "quarter", "month", "weekofyear", "day", "dayofweek", "dayofyear", "hour", "minute", "second"),
    *("unix_seconds", "unix_millis", "unix_micros", "unix_timestamp"),
    *("bigint", "binary", "decimal", "smallint", "tinyint", "int", "string", "date", "timestamp", "boolean"),
]
TYPES = [
    *("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(5,2)", "DECIMAL(38,18)"),
    *("DECIMAL(38,0)", "STRING", "BINARY", "DATE", "TIMESTAMP", "TIMESTAMP_LTZ"),
]
CONSTANTS = [
    *(
        "1",
        "-1",
        "0",
        "2.5",
        "1e3",
        "1e308",
        "'a'",
        "''",
        "'12'",
        "NULL",
        "TRUE",
        "10Y",
        "9223372036854775807",
        "X'00'",
    ),
    *("DATE '2024-01-31'", "TIMESTAMP '2024-01-01 00:00:00'", "INTERVAL 5 MINUTES", "0." + "0" * 37 + "1"),
]


def random_expression(source: random.Random, depth: int) -> str:
    def part() -> str:
        return random_expression(source, depth - 1)

    if depth == 0 or source.random() < 0.15:
        return source.choice(TABLE.schema.names if source.random() < 0.7 else CONSTANTS)
    return source.choice(
        [
            lambda: f"({part()} {source.choice(['+', '-', '*', '/', '%', 'DIV'])} {part()})",
            lambda: f"({part()} {source.choice(['=', '<>', '<', '<=', '>', '>=', '<=>', 'AND', 'OR'])} {part()})",
            lambda: f"CAST({part()} AS {source.choice(TYPES)})",
            lambda: f"{source.choice(FUNCTIONS_OF_ONE)}({part()})",
            lambda: f"CASE WHEN {part()} THEN {part()} ELSE {part()} END",
            lambda: f"{source.choice(['coalesce', 'greatest', 'least', 'concat', 'nullif'])}({part()}, {part()})",
            lambda: f"({part()} IN ({part()}, {part()}))",
            lambda: f"({part()} {source.choice(['LIKE', 'ILIKE', 'RLIKE'])} {part()})",
            lambda: (
                f"{source.choice(['substring', 'replace', 'contains', 'power', 'log', 'round'])}({part()}, {part()})"
            ),
            lambda: f"{source.choice(['-', 'NOT '])} {part()}",
            lambda: f"date_trunc('{source.choice(['day', 'week', 'year', 'microsecond'])}', {part()})",
        ]
    )()


def run_many(seed: int, count: int) -> int:
    """How many of `count` random expressions have types that fit; each of these must give values for every row."""
    source, ran = random.Random(seed), 0
    for _ in range(count):
        text = random_expression(source, source.randint(1, 3))
        try:
            run(text)
        except QueryError:
            continue
        except Exception as problem:
            raise AssertionError(text) from problem
        ran += 1
    return ran


@pytest.mark.parametrize("seed", range(4))
def test_no_expression_fails_on_any_row(seed: int) -> None:
    assert run_many(seed, 500) > 50


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(100, 110))
def test_no_expression_fails_on_any_row_at_length(seed: int) -> None:
    assert run_many(seed, 10_000) > 1_000
