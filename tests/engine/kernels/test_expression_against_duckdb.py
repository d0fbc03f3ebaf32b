"""Expressions whose meaning Braid and DuckDB share, random and fixed, computed by both."""

import random
from collections.abc import Callable
from datetime import date, datetime, timedelta

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from braid import Stream
from braid.engine.kernels.expression import compile_expression
from braid.language import parse
from braid.model.query import Output

Pair = tuple[str, str]
"""The same expression for Braid and for DuckDB."""


def rows(count: int = 300) -> pa.RecordBatch:
    source = random.Random(7)

    def column(values: Callable[[], object], type_: pa.DataType) -> pa.Array:
        return pa.array([None if source.random() < 0.15 else values() for _ in range(count)], type_)

    letters = "aAbB%_.1 ü"
    return pa.record_batch(
        {
            "ts": column(
                lambda: datetime(2024, 1, 1) + timedelta(seconds=source.randint(-(10**8), 10**8)), pa.timestamp("us")
            ),
            "i": column(lambda: source.randint(-5, 5), pa.int64()),
            "j": column(lambda: source.randint(-100, 100), pa.int64()),
            "x": column(lambda: source.choice([-2.5, -1.0, 0.0, 0.5, 1.0, 3.25]), pa.float64()),
            "y": column(lambda: source.uniform(-10, 10), pa.float64()),
            "s": column(lambda: "".join(source.choices(letters, k=source.randint(0, 5))), pa.string()),
            "t": column(lambda: "".join(source.choices(letters, k=source.randint(0, 2))), pa.string()),
            "p": column(lambda: source.random() < 0.5, pa.bool_()),
            "q": column(lambda: source.random() < 0.5, pa.bool_()),
            "day": column(lambda: date(2024, 1, 1) + timedelta(days=source.randint(-400, 400)), pa.date32()),
        }
    )


TABLE = rows()
STREAMS = {"t": Stream("t", TABLE.schema, "ts")}


def braid_values(text: str) -> list[object]:
    output = parse(f"SELECT {text} AS x FROM t [NOW]", STREAMS).outputs[0]
    assert isinstance(output, Output)
    expression = compile_expression(output.expression, lambda column: TABLE.schema.field(column.name).type)
    return expression({column: TABLE.column(column.name) for column in expression.columns}, len(TABLE)).to_pylist()


@pytest.fixture(scope="module")
def duckdb_values() -> Callable[[str], list[object]]:
    connection = duckdb.connect()
    connection.register("t", pa.table(TABLE))
    return lambda text: [row[0] for row in connection.execute(f"SELECT {text} FROM t").fetchall()]


def both(template: str, *operands: Pair) -> Pair:
    """The template filled in with the operands of Braid and with those of DuckDB."""
    of_braid = template.format(*(operand[0] for operand in operands))
    of_duckdb = template.format(*(operand[1] for operand in operands))
    return of_braid, of_duckdb


def integers(depth: int) -> st.SearchStrategy[Pair]:
    leaves = st.sampled_from(["i", "j", "3", "-2", "0", "CAST(NULL AS BIGINT)"]).map(lambda text: (text, text))
    if depth == 0:
        return leaves
    one, truth, text = integers(depth - 1), booleans(depth - 1), strings(depth - 1)
    return st.one_of(
        leaves,
        st.builds(lambda operator, a, b: both("({0} " + operator + " {1})", a, b), st.sampled_from("+-*"), one, one),
        st.builds(lambda a, b: (f"({a[0]} % {b[0]})", f"({a[1]} % nullif({b[1]}, 0))"), one, one),
        st.builds(lambda a: both("(- {0})", a), one),
        st.builds(lambda a: both("abs({0})", a), one),
        st.builds(lambda a, b, c: both("CASE WHEN {0} THEN {1} ELSE {2} END", a, b, c), truth, one, one),
        st.builds(lambda a, b, c: both("CASE {0} WHEN {1} THEN {2} END", a, b, c), one, one, one),
        st.builds(lambda a, b: both("coalesce({0}, {1})", a, b), one, one),
        st.builds(lambda a, b: both("nullif({0}, {1})", a, b), one, one),
        st.builds(lambda a, b, c: both("greatest({0}, {1}, {2})", a, b, c), one, one, one),
        st.builds(lambda a, b: both("least({0}, {1})", a, b), one, one),
        st.builds(lambda a: both("length({0})", a), text),
    )


def booleans(depth: int) -> st.SearchStrategy[Pair]:
    leaves = st.sampled_from(["p", "q", "TRUE", "CAST(NULL AS BOOLEAN)"]).map(lambda text: (text, text))
    if depth == 0:
        return leaves
    one, number, text = booleans(depth - 1), integers(depth - 1), strings(depth - 1)
    comparisons = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
    reals = st.sampled_from(["x", "y", "0.5e0", "i", "j"]).map(lambda text: (text, text))
    return st.one_of(
        leaves,
        st.builds(
            lambda operator, a, b: both("({0} " + operator + " {1})", a, b), st.sampled_from(["AND", "OR"]), one, one
        ),
        st.builds(lambda a: both("(NOT {0})", a), one),
        st.builds(lambda operator, a, b: both("({0} " + operator + " {1})", a, b), comparisons, number, number),
        st.builds(lambda operator, a, b: both("({0} " + operator + " {1})", a, b), comparisons, reals, reals),
        st.builds(lambda operator, a, b: both("({0} " + operator + " {1})", a, b), comparisons, text, text),
        st.builds(lambda a: both("({0} IS NULL)", a), number),
        st.builds(lambda a, b: both("({0} IS DISTINCT FROM {1})", a, b), number, number),
        st.builds(lambda a, b: both("({0} IS NOT DISTINCT FROM {1})", a, b), text, text),
        st.builds(lambda a, b, c: both("({0} BETWEEN {1} AND {2})", a, b, c), number, number, number),
        st.builds(lambda a, b, c: both("({0} IN ({1}, {2}, 3))", a, b, c), number, number, number),
        st.builds(lambda a: both("({0} NOT IN (1, 2, 3))", a), number),
        st.builds(lambda a: both("({0} IN (1, NULL))", a), number),
        st.builds(
            lambda a, b: both("({0} LIKE {1})", a, b),
            text,
            st.sampled_from([("'a%'",) * 2, ("'%b_'",) * 2, ("t",) * 2]),
        ),
        st.builds(lambda a, b: (f"startswith({a[0]}, {b[0]})", f"starts_with({a[1]}, {b[1]})"), text, text),
        st.builds(lambda a, b: both("contains({0}, {1})", a, b), text, text),
    )


def strings(depth: int) -> st.SearchStrategy[Pair]:
    leaves = st.sampled_from(["s", "t", "'aB'", "''", "CAST(NULL AS VARCHAR(9))"]).map(lambda text: (text, text))
    if depth == 0:
        return leaves
    one, truth = strings(depth - 1), booleans(depth - 1)
    return st.one_of(
        leaves,
        st.builds(lambda a, b: both("({0} || {1})", a, b), one, one),
        st.builds(lambda a: both("lower({0})", a), one),
        st.builds(lambda a: both("upper({0})", a), one),
        st.builds(lambda a: both("trim({0})", a), one),
        st.builds(lambda a, b, c: both("CASE WHEN {0} THEN {1} ELSE {2} END", a, b, c), truth, one, one),
        st.builds(
            lambda a, start, size: both(f"substring({{0}}, {start}, {size})", a),
            one,
            st.integers(1, 4),
            st.integers(0, 3),
        ),
        st.builds(lambda a, b: both("replace({0}, 'a', {1})", a, b), one, st.just(("'bb'", "'bb'"))),
        st.builds(lambda a, b: both("least({0}, {1})", a, b), one, one),
    )


@settings(max_examples=250, deadline=None)
@given(st.one_of(integers(3), booleans(3), strings(3)))
def test_random_expressions(duckdb_values: Callable[[str], list[object]], pair: Pair) -> None:
    assert braid_values(pair[0]) == duckdb_values(pair[1])


@pytest.mark.sweep
@settings(max_examples=3_000, deadline=None)
@given(st.one_of(integers(4), booleans(4), strings(4)))
def test_random_expressions_long(duckdb_values: Callable[[str], list[object]], pair: Pair) -> None:
    assert braid_values(pair[0]) == duckdb_values(pair[1])


@pytest.mark.parametrize(
    ("braid_text", "duckdb_text"),
    [
        ("i / j", "i / nullif(j, 0)"),
        ("y / x", "y / nullif(x, 0)"),
        ("j DIV 7", "CAST(trunc(j / 7) AS BIGINT)"),
        ("y % 3", "y % 3"),
        ("x + i", "x + i"),
        ("x > i", "x > i"),
        ("floor(y)", "CAST(floor(y) AS BIGINT)"),
        ("ceil(y)", "CAST(ceil(y) AS BIGINT)"),
        ("round(x)", "round(x)"),
        ("sqrt(abs(y))", "sqrt(abs(y))"),
        ("exp(x)", "exp(x)"),
        ("sign(y)", "CAST(sign(y) AS DOUBLE)"),
        ("year(ts)", "year(ts)"),
        ("quarter(day)", "quarter(day)"),
        ("month(ts)", "month(ts)"),
        ("day(day)", "day(day)"),
        ("hour(ts)", "hour(ts)"),
        ("minute(ts)", "minute(ts)"),
        ("second(ts)", "second(ts)"),
        ("weekofyear(day)", "weekofyear(day)"),
        ("dayofweek(ts)", "dayofweek(ts) + 1"),
        ("dayofyear(ts)", "dayofyear(ts)"),
        *(
            (f"date_trunc('{unit}', ts)", f"date_trunc('{unit}', ts)")
            for unit in ("year", "quarter", "month", "week", "hour")
        ),
        ("ts + INTERVAL 90 MINUTES", "ts + INTERVAL 90 MINUTES"),
        ("ts - INTERVAL 90 MINUTES > day", "ts - INTERVAL 90 MINUTES > day"),
        ("day + i", "day + CAST(i AS INTEGER)"),
        ("unix_micros(ts)", "epoch_us(ts)"),
        ("CAST(ts AS DATE)", "CAST(ts AS DATE)"),
        ("CAST(day AS TIMESTAMP)", "CAST(day AS TIMESTAMP)"),
        ("CAST(i AS STRING)", "CAST(i AS VARCHAR)"),
        (
            "CAST(s AS INT)",
            "TRY_CAST(CASE WHEN regexp_full_match(s, ' *[0-9]+\\.?[0-9]* *') THEN trunc(CAST(s AS DOUBLE)) "
            "WHEN regexp_full_match(s, ' *\\.[0-9]* *') THEN 0 END AS INT)",
        ),
        ("CAST(y AS DECIMAL(10, 3))", "CAST(CAST(y AS VARCHAR) AS DECIMAL(10, 3))"),
        (
            "CAST(j AS DECIMAL(10, 2)) * CAST(i AS DECIMAL(5, 1))",
            "CAST(j AS DECIMAL(10, 2)) * CAST(i AS DECIMAL(5, 1))",
        ),
        ("CAST(j AS DECIMAL(10, 2)) > y", "CAST(j AS DECIMAL(10, 2)) > y"),
        ("s RLIKE '[ab].'", "regexp_matches(s, '[ab].')"),
        ("substring(s, -2)", "substring(s, -2)"),
        ("ltrim(s)", "ltrim(s)"),
    ],
)
def test_functions(duckdb_values: Callable[[str], list[object]], braid_text: str, duckdb_text: str) -> None:
    assert braid_values(braid_text) == duckdb_values(duckdb_text)
