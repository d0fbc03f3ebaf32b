"""Grouped queries on the local host: results and types of every aggregate over every type."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import braid
from braid.testing import assert_same_rows, oracle

FLOATS = [0.0, -0.0, float("nan"), float("inf"), 1.5, None]
TYPES = {
    "i": pa.array([1, -7, None, 100], pa.int16()),
    "j": pa.array([2**40, 3, None, -5]),
    "f": pa.array(FLOATS),
    "g": pa.array(FLOATS, pa.float32()),
    "d": pa.array([Decimal("1.25"), Decimal("-3.00"), None], pa.decimal128(9, 2)),
    "t": pa.array(["one", "two", None, "three"]),
    "c": pa.array(["x", "y", None]).dictionary_encode(),
    "b": pa.array([True, False, None]),
    "m": pa.array([1, 2, None], pa.timestamp("us", "UTC")),
    "e": pa.array([1, 2, None], pa.date32()),
}


def rows_of(seed: int, rows: int = 60) -> pa.Table:
    generator = np.random.default_rng(seed)
    times = generator.integers(-30_000_000, 30_000_000, rows)
    columns = {name: values.take(pa.array(generator.integers(0, len(values), rows))) for name, values in TYPES.items()}
    return pa.table({"ts": pa.array(times, pa.timestamp("us")), "k": generator.integers(0, 5, rows), **columns})


FROM = "FROM a [RANGE 5 SECONDS], b [RANGE 5 SECONDS] WHERE a.k = b.k"
QUERIES = [
    f"SELECT COUNT(*) AS n, COUNT(a.f) AS m, SUM(a.i) AS i, SUM(b.j) AS j, SUM(a.d) AS d, AVG(b.d) AS e {FROM}",
    f"SELECT COUNT(*) AS n, MAX(a.i) AS i {FROM} AND a.k > 100",
    f"SELECT a.t, a.c, b.b, COUNT(*) AS n {FROM} GROUP BY a.t, a.c, b.b",
    f"SELECT a.i % 3 AS r, AVG(b.j) + 1 AS s {FROM} GROUP BY a.i % 3",
    f"SELECT window.start, window.end AS ends, COUNT(*) AS n {FROM} GROUP BY WINDOW(event_time, '7 seconds')",
    f"SELECT b.k, window.start, MIN(a.ts) AS t {FROM} GROUP BY WINDOW(event_time, '7 seconds', '3 seconds'), b.k",
    f"SELECT a.k {FROM} GROUP BY a.k HAVING SUM(a.i) > 0 AND COUNT(*) > 5",
    f"SELECT COUNT(*) AS n {FROM} GROUP BY a.k",
    f"SELECT COUNT(DISTINCT a.i) AS n, SUM(DISTINCT b.j) AS s, AVG(DISTINCT a.d) AS e, SUM(a.i) AS i {FROM}",
    f"SELECT b.k, window.start, COUNT(DISTINCT a.t) AS n, SUM(DISTINCT a.d) AS d, MAX(DISTINCT a.i) AS m {FROM} "
    "GROUP BY WINDOW(event_time, '7 seconds', '3 seconds'), b.k HAVING COUNT(DISTINCT a.t) > 1",
    f"SELECT a.k, COUNT(*) FILTER (WHERE a.i > 0) AS n, COUNT(DISTINCT b.t) FILTER (WHERE b.f < 2) AS m, "
    f"AVG(a.j) FILTER (WHERE a.b) + 1 AS e {FROM} GROUP BY a.k HAVING COUNT(*) FILTER (WHERE b.b) > 1",
    *(f"SELECT a.k, COUNT(DISTINCT a.{name}) AS n {FROM} GROUP BY a.k" for name in TYPES),
    *(f"SELECT a.k, MIN(a.{name}) AS least, MAX(a.{name}) AS most {FROM} GROUP BY a.k" for name in TYPES),
    *(f"SELECT a.{name}, COUNT(b.{name}) AS n {FROM} GROUP BY a.{name}" for name in TYPES),
]


@pytest.mark.parametrize("text", QUERIES)
def test_groups_are_those_of_the_oracle(text: str) -> None:
    streams = {name: rows_of(seed) for seed, name in enumerate("ab")}
    assert_same_rows(braid.run(text, streams), oracle(text, streams), types=False)
    assert_same_rows(braid.run(text, streams, batch_rows=7, lateness="1 hour"), braid.run(text, streams))


def test_types_of_aggregates_are_those_of_spark() -> None:
    text = f"""SELECT COUNT(*) AS n, SUM(a.i) AS i, SUM(a.j) AS j, SUM(a.g) AS g, SUM(a.d) AS d, AVG(a.d) AS e,
                      MIN(a.c) AS c, MAX(a.m) AS m {FROM}"""
    streams = {name: rows_of(seed) for seed, name in enumerate("ab")}
    types = dict(zip("nijgdecm", braid.run(text, streams).schema.types, strict=True))
    whole, real, instant = pa.int64(), pa.float64(), pa.timestamp("us", "UTC")
    expected = [whole, whole, whole, real, pa.decimal128(19, 2), real, pa.string(), instant]
    assert types == dict(zip("nijgdecm", expected, strict=True))


def test_a_sum_that_does_not_fit_is_null() -> None:
    rows = pa.table({"ts": pa.array([1, 2], pa.timestamp("us")), "x": [2**63 - 1, 1], "y": [2**63 - 1, 0]})
    text = "SELECT SUM(x) AS x, SUM(y) AS y FROM a [NOW]"
    assert braid.run(text, {"a": rows}).to_pylist() == [{"x": None, "y": 2**63 - 1}]


def test_durations_have_a_minimum_and_a_maximum() -> None:
    rows = pa.table({"ts": pa.array([1, 2], pa.timestamp("us")), "x": pa.array([5, 9], pa.duration("ms"))})
    (row,) = braid.run("SELECT MIN(x) AS low, MAX(x) AS high FROM a [NOW]", {"a": rows}).to_pylist()
    assert (row["low"].microseconds, row["high"].microseconds) == (5_000, 9_000)


def test_the_average_of_decimals_is_exact_whatever_their_order() -> None:
    cents = [Decimal("1.10"), Decimal("2.20"), Decimal("-3.30")]
    for values in (cents, cents[::-1]):
        rows = pa.table({"ts": pa.array([1, 2, 3], pa.timestamp("us")), "x": pa.array(values, pa.decimal128(9, 2))})
        assert braid.run("SELECT AVG(a.x) AS x FROM a [NOW]", {"a": rows}).to_pylist() == [{"x": 0.0}]
