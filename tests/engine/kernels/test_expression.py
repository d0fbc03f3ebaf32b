"""Arithmetic, comparisons, choices and numeric functions, value by value, with the meaning of Spark (ANSI mode off)."""

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from braid.engine.kernels.expression import compile_expression
from braid.model.expressions.expression import Call, Column, Literal
from tests.engine.kernels.conftest import INFINITY, NAN, TABLE, assert_values, compiled, run


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
    assert_values(text, expected)


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
    assert_values(text, expected)


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
def test_conditionals_and_numeric_functions(text: str, expected: list[Any]) -> None:
    assert_values(text, expected)


def test_a_column_alone_is_returned_unchanged() -> None:
    for name in ("v", "w", "k", "u", "tz", "du"):
        assert run(name).equals(TABLE.column(name))


def test_each_column_is_listed_once_and_constants_read_none() -> None:
    assert compiled("i + j * i").columns == (Column("t", "i"), Column("t", "j"))
    constant = compiled("1 + 1")
    assert constant.columns == ()
    assert constant({}, 3).to_pylist() == [2, 2, 2]
    assert constant({}, 0).to_pylist() == []


def test_zero_and_minus_zero_are_two_constants() -> None:
    """Equal expressions are compiled once, and these two are equal numbers."""
    for _ in range(2):
        assert_values("0.0D", [0.0] * 4)
        assert_values("-0.0D", [-0.0] * 4)
    assert Literal(0.0, pa.float64()) != Literal(-0.0, pa.float64())
    assert len({Literal(0.0, pa.float64()), Literal(-0.0, pa.float64()), Literal(0.0, pa.float64())}) == 2


def test_an_expression_is_compiled_anew_for_columns_of_other_types() -> None:
    expression = Call("add", (Column("t", "x"), Column("t", "x")))
    types = [compile_expression(expression, lambda column, kind=kind: kind).type for kind in (pa.int64(), pa.float64())]
    assert types == [pa.int64(), pa.float64()]
