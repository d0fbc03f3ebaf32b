"""The engine computes every expression as the oracle does, for ordinary and special values."""

from decimal import Decimal

import pyarrow as pa
import pytest

import braid
from braid.testing import assert_same_rows, oracle

NAN, INFINITY = float("nan"), float("inf")
SECOND, DAY = 10**6, 86_400 * 10**6

ROWS = pa.table(
    {
        "ts": pa.array(
            [3 * DAY + 3_723 * SECOND + 5, 0, -1, -400 * DAY, 1_700_000_000_123_456, 5, 6, 7], pa.timestamp("us")
        ),
        "x": [-7, 0, None, 3, 10, -1, 2, 7],
        "y": [2, -3, 4, 0, None, 3, -2, -7],
        "i": pa.array([7, -7, 0, None, 1, 2, 3, 4], pa.int32()),
        "w": [2.5, -2.5, NAN, 0.0, -0.0, INFINITY, None, 1e18],
        "f": pa.array([2.5, -2.5, NAN, 0.0, -0.0, INFINITY, None, 1.5], pa.float32()),
        "d": [
            Decimal(text) if text else None for text in ("2.50", "-2.50", "", "0.00", "1.25", "99.75", "-0.01", "3.00")
        ],
        "t": ["abcab", "", "a%b", None, "ÄB", "  x ", "a\\b", "12"],
        "day": pa.array([3, 0, -1, None, 19_000, 5, 6, 7], pa.date32()),
        "b": [True, False, None, True, True, False, False, True],
        "id": range(8),
        "tags": [["p", "q"], [], None, [None, "r"], ["s"], ["t", "u", "v"], ["w"], ["x", "y"]],
        "point": pa.array(
            [{"x": 1, "at": {"City": "here"}}, None, {"x": None, "at": None}] + 5 * [{"x": 2, "at": {"City": None}}],
            pa.struct({"x": pa.int64(), "at": pa.struct({"City": pa.string()})}),
        ),
        "prices": pa.array(
            [[("a", 1), ("b", 2)], [], None, [("b", None)], [("a", 3)], [("c", 4)], [("a", 5), ("c", 6)], [("b", 7)]],
            pa.map_(pa.string(), pa.int64()),
        ),
    }
)

ELEMENTS = """s.tags[0] | tags[1] | tags[2] | tags[-1] | tags[i] | tags[NULL] | s.point.x + 1 | s.point.at.city
s.POINT.AT.CITY | s.point.at | prices['a'] | prices['b'] * 2 | prices['a'] IS NULL | upper(s.tags[0])
s.tags[s.point.x]"""

ARITHMETIC = """x + y | x - y | x * y | x / y | x div y | x % y | mod(x, 4) | -x | + x | i + i | i * i | x + i | w + f
f + f | f * i | w % x | x % w | w / x | cast(x / 2 as bigint) div 2 | x div y % 3 | d + d | d - 1 | d * d | x * d
d / d | d % 2 | d div 2 | -d | -w | x + 1.5 | x * 1.5 | d * 1.5 | x / 3.0 | 1e1 * x | abs(x) | abs(w) | abs(d)
sign(x) | sign(w) | floor(w) | ceil(w) | ceiling(f) | floor(d) | ceil(d) | round(w) | round(w, 1) | round(d)
round(d, 1) | round(x, -1) | sqrt(x) | sqrt(w) | exp(x) | ln(x) | log(x) | log10(w)
log(2, x) | power(x, 2) | pow(y, -1)"""

COMPARISON = """x = y | x == y | x <> y | x != y | x < y | x <= y | x > y | x >= y | x <=> y | x = w | f = w | f < w
x < d | w < d | w = w | w <> w | w > 5 | x > 2.5 | w <=> f | x BETWEEN y AND 5 | w BETWEEN 0 AND 3
x NOT BETWEEN 0 AND 3 | x IN (1, NULL, 3) | x NOT IN (1, 2) | t IN ('a', '12') | x IS NULL | t IS NOT NULL
isnull(x) | isnotnull(x) | b = TRUE | NOT b | b AND x > 0 | b OR x > 0 | NOT (x = y) | x = y OR b
t = 'abcab' | t < 'b' | greatest(x, y) | greatest(w, x) | least(w, x) | greatest(d, x)
CASE WHEN x = 0 THEN 'a' WHEN x > 5 THEN t END | CASE x WHEN -7 THEN 1 ELSE 0 END | if(b, x, y) | nvl(x, y)
ifnull(x, 0) | coalesce(x, w) | nullif(x, -7)"""

TEXT = """upper(t) | lower(t) | length(t) | char_length(t) | trim(t) | ltrim(t) | rtrim(t) | startswith(t, 'a')
endswith(t, 'b') | contains(t, 'b') | substring(t, 2) | substring(t, 0, 2) | substring(t, -2, 2) | substr(t, -9, 5)
substring(t, 2, -1) | substring(t, x, y) | replace(t, 'a') | replace(t, 'a', 'xy') | concat(t, x) | concat(t, '-', b)
t LIKE 'a%' | t LIKE '%b' | t LIKE '_bc%' | t NOT LIKE 'a%' | t LIKE 'a\\\\\\\\%' | t LIKE 'a!%%' ESCAPE '!'
t ILIKE 'A%' | t RLIKE 'b.a' | t RLIKE '^a'"""

TIME = """year(ts) | quarter(ts) | month(ts) | week(ts) | day(ts) | dayofmonth(ts) | dayofweek(ts) | dayofyear(ts)
hour(ts) | minute(ts) | second(ts) | year(day) | week(day) | extract(SECOND FROM ts) | extract(YEAR FROM ts)
unix_seconds(ts) | unix_millis(ts) | unix_micros(ts) | unix_timestamp(ts) | date_trunc('hour', ts)
date_trunc('week', ts) | date_trunc('month', day) | ts + INTERVAL 1 DAY | ts - INTERVAL 90 MINUTES
INTERVAL 1 HOUR + ts | day + 1 | day - 1
ts - TIMESTAMP '1970-01-01 00:00:00' | ts - TIMESTAMP '1970-01-01 00:00:00' > INTERVAL 1 HOUR | day < ts
day = CAST(ts AS DATE) | ts < '1971-01-01' | ts BETWEEN '1970-01-01' AND '2020-01-01' | day > '1970-01-02'"""

CASTS = """CAST(w AS INT) | CAST(w AS BIGINT) | CAST(d AS INT) | CAST(t AS INT) | CAST(t AS DOUBLE) | CAST(b AS INT)
CAST(b AS STRING) | CAST(x AS STRING) | CAST(d AS STRING) | CAST(day AS STRING) | CAST(ts AS STRING)
CAST(ts AS DATE) | CAST(day AS TIMESTAMP) | CAST(x AS BOOLEAN) | CAST(d AS DOUBLE) | CAST(d AS DECIMAL(4, 1))
CAST(w AS DECIMAL(10, 1)) | CAST(x AS DECIMAL(5, 2)) | CAST('2020-02-30' AS DATE) | CAST(t AS DATE)"""


def expressions(*groups: str) -> list[str]:
    """The expressions in groups, which are separated by bars and line breaks."""
    lines = [line for group in groups for line in group.splitlines()]
    return [expression.strip() for line in lines for expression in line.split(" | ")]


@pytest.mark.parametrize("expression", expressions(ARITHMETIC, COMPARISON, TEXT, TIME, CASTS, ELEMENTS))
def test_expression(expression: str) -> None:
    text = f"SELECT id, {expression} AS value, t || '.' AS last FROM s [NOW]"
    # Only values are compared: DuckDB may compute a number in a wider type.
    assert_same_rows(braid.run(text, {"s": ROWS}), oracle(text, {"s": ROWS}), types=False)
