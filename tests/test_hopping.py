"""`[HOP ..]` joins rows of the same hopping window, once for each window that has them all."""

import pyarrow as pa
import pytest

import braid
from braid import QueryError
from braid.testing import assert_same_rows, oracle
from braid.testing.choices import SeededChoices

HOP = "[HOP 6 SECONDS SLIDE 2 SECONDS]"
STREAMS = "abc"


def windows_of(stream: str) -> str:
    return f"HOP(TABLE {stream}, DESCRIPTOR(ts), INTERVAL 2 SECONDS, INTERVAL 6 SECONDS)"


def rows(choices: SeededChoices) -> pa.Table:
    times = [choices.integer(0, 30) * 500_000 for _ in range(choices.integer(0, 14))]
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us")),
            "k": pa.array([choices.pick((1, 2, 3, None)) for _ in times], pa.int64()),
        }
    )


QUERIES = [
    (
        f"SELECT a.ts, b.ts, a.window_start, b.window_end FROM a {HOP} JOIN b {HOP} ON a.k = b.k",
        "SELECT a.ts, b.ts, a.window_start, b.window_end FROM {a} a JOIN {b} b ON a.k = b.k "
        "AND a.window_start = b.window_start AND a.window_end = b.window_end",
    ),
    (
        f"SELECT x.ts, y.ts, c.ts FROM a {HOP} AS x, b {HOP} AS y JOIN c {HOP} ON y.k = c.k WHERE x.k = y.k",
        "SELECT x.ts, y.ts, c.ts FROM {a} x, {b} y JOIN {c} c ON y.k = c.k AND y.window_start = c.window_start "
        "WHERE x.k = y.k AND x.window_start = y.window_start",
    ),
    (
        f"SELECT a.ts, b.ts, a.window_start FROM a {HOP} LEFT JOIN b {HOP} ON a.k = b.k",
        "SELECT a.ts, b.ts, a.window_start FROM {a} a LEFT JOIN {b} b ON a.k = b.k AND a.window_start = b.window_start",
    ),
    (
        f"SELECT a.ts, b.ts, c.ts FROM a {HOP} FULL JOIN b {HOP} ON a.k = b.k JOIN c {HOP} ON a.k = c.k OR b.k = c.k",
        "SELECT a.ts, b.ts, c.ts FROM {a} a FULL JOIN {b} b ON a.k = b.k AND a.window_start = b.window_start "
        "JOIN {c} c ON (a.k = c.k OR b.k = c.k) AND COALESCE(a.window_start, b.window_start) = c.window_start",
    ),
    (
        f"SELECT a.ts, a.window_start FROM a {HOP} WHERE NOT EXISTS (SELECT * FROM b {HOP} WHERE a.k = b.k)",
        "SELECT a.ts, a.window_start FROM {a} a "
        "WHERE NOT EXISTS (SELECT * FROM {b} b WHERE a.k = b.k AND a.window_start = b.window_start)",
    ),
    (
        f"SELECT a.ts, b.ts, c.ts FROM a {HOP} JOIN b [RANGE 3 SECONDS] ON a.k = b.k CROSS JOIN c {HOP}",
        "SELECT a.ts, b.ts, c.ts FROM {a} a JOIN b [RANGE 3 SECONDS] ON a.k = b.k "
        "JOIN {c} c ON a.window_start = c.window_start",
    ),
    (
        f"SELECT a.ts, b.ts, c.ts FROM a [RANGE 3 SECONDS] LEFT JOIN b {HOP} ON a.k = b.k "
        f"LEFT JOIN c {HOP} ON a.k = c.k",
        "SELECT a.ts, b.ts, c.ts FROM a [RANGE 3 SECONDS] LEFT JOIN {b} b ON a.k = b.k "
        "LEFT JOIN {c} c ON a.k = c.k AND c.window_start = COALESCE(b.window_start, c.window_start)",
    ),
    (
        f"SELECT a.ts, b.ts, c.ts FROM a {HOP} FULL JOIN b [RANGE 3 SECONDS] ON a.k = b.k JOIN c {HOP} ON b.k = c.k",
        "SELECT a.ts, b.ts, c.ts FROM {a} a FULL JOIN b [RANGE 3 SECONDS] ON a.k = b.k "
        "JOIN {c} c ON b.k = c.k AND c.window_start = COALESCE(a.window_start, c.window_start)",
    ),
    (
        f"SELECT a.ts, b.ts FROM a [RANGE 3 SECONDS] LEFT JOIN b {HOP} ON a.k = b.k "
        f"WHERE NOT EXISTS (SELECT * FROM c {HOP} WHERE a.k < c.k)",
        "SELECT a.ts, b.ts FROM a [RANGE 3 SECONDS] LEFT JOIN {b} b ON a.k = b.k WHERE NOT EXISTS "
        "(SELECT * FROM {c} c WHERE a.k < c.k AND c.window_start = COALESCE(b.window_start, c.window_start))",
    ),
    (
        f"SELECT a.ts, b.ts, c.ts FROM c {HOP}, a [RANGE 3 SECONDS] LEFT JOIN b {HOP} ON a.k = b.k WHERE a.k = c.k",
        "SELECT a.ts, b.ts, c.ts FROM {c} c, a [RANGE 3 SECONDS] LEFT JOIN {b} b ON a.k = b.k "
        "WHERE a.k = c.k AND c.window_start = COALESCE(b.window_start, c.window_start)",
    ),
]


@pytest.mark.parametrize(("short", "long"), QUERIES)
def test_rows_of_the_same_window_join(short: str, long: str) -> None:
    written = long.format(**{stream: windows_of(stream) for stream in STREAMS})
    for seed in range(15):
        choices = SeededChoices(seed)
        streams = {stream: rows(choices) for stream in STREAMS}
        lateness = dict.fromkeys(STREAMS, "1 hour")
        actual = braid.run(short, streams, time="ts", lateness=lateness, batch_rows=choices.pick((1, 3, None)))
        assert_same_rows(actual, oracle(written, streams), message=f"seed {seed}")
        assert_same_rows(actual, oracle(short, streams), message=f"seed {seed}, windows compared by the oracle")


SHORT_HOP = "[HOP 4 SECONDS SLIDE 2 SECONDS]"
"""A row at second 1 is in the windows that begin at -2 and at 0."""

Row = tuple[int | None, ...]


def results(text: str, **streams: list[tuple[int, int]]) -> list[Row]:
    """The results of a query over streams of (second, k), sorted."""
    tables = {
        name: pa.table(
            {
                "ts": pa.array([second * 1_000_000 for second, _ in rows], pa.timestamp("us")),
                "k": pa.array([k for _, k in rows], pa.int64()),
            }
        )
        for name, rows in streams.items()
    }
    actual = braid.run(text, tables, time="ts", lateness=dict.fromkeys(tables, "1 hour"))
    return sorted((tuple(row.values()) for row in actual.to_pylist()), key=repr)


def test_left_join_after_a_left_join_that_left_the_only_window_out() -> None:
    b, c = (f"LEFT JOIN {stream} {SHORT_HOP} ON {stream}.k = a.k" for stream in "bc")
    for joins in (f"{b} {c}", f"{c} {b}"):
        text = f"SELECT a.k, b.k AS bk, c.k AS ck FROM a [RANGE 4 SECONDS] {joins}"
        assert results(text, a=[(0, 1)], b=[(1, 9)], c=[(1, 1)]) == [(1, None, 1), (1, None, 1)]
        # The row of b is in the windows that begin at 0 and at 2: only in that at 0 it joins the row of c.
        both = [(1, 1, 1), (1, 1, None)] if joins.startswith(b) else [(1, 1, 1), (1, None, 1)]
        assert results(text, a=[(0, 1)], b=[(2, 1)], c=[(1, 1)]) == both


def test_left_join_after_a_right_join_that_left_the_only_window_out() -> None:
    text = (
        f"SELECT a.k, b.k AS bk, c.k AS ck FROM a {SHORT_HOP} RIGHT JOIN b [NOW] ON b.k = a.k + 10 "
        f"LEFT JOIN c {SHORT_HOP} ON c.k = b.k"
    )
    assert results(text, a=[(0, 1)], b=[(1, 5)], c=[(1, 5)]) == [(None, 5, 5), (None, 5, 5)]
    # At second 1, both rows are in the windows that begin at -2 and at 0.
    assert results(text, a=[(0, 1)], b=[(1, 11)], c=[(1, 11)]) == [(1, 11, 11), (1, 11, 11)]


def test_subquery_beside_a_left_join_that_left_the_only_window_out() -> None:
    for join in ("", f"LEFT JOIN a {SHORT_HOP} ON b.k = a.k + 10"):
        text = f"SELECT b.k FROM b [NOW] {join} WHERE b.k IN (SELECT k FROM e {SHORT_HOP})"
        streams = {"a": [(0, 1)]} if join else {}
        assert results(text, b=[(1, 9), (2, 9), (2, 8)], e=[(1, 9)], **streams) == [(9,), (9,)]
    excluded = text.replace("IN (", "NOT IN (")
    assert results(excluded, b=[(1, 9), (2, 8)], e=[(1, 9)], a=[(0, 1)]) == [(8,)]


def test_semi_join_after_a_full_join_with_a_window_on_one_side() -> None:
    text = (
        f"SELECT a.k, c.k AS ck FROM a [RANGE 4 SECONDS] LEFT ANTI JOIN b {SHORT_HOP} ON b.k = a.k "
        f"FULL JOIN c {SHORT_HOP} ON c.k = a.k LEFT SEMI JOIN d {SHORT_HOP} ON d.k = a.k"
    )
    assert results(text, a=[(0, 1)], b=[(1, 9)], c=[(1, 2)], d=[(1, 1)]) == [(1, None)]
    # c is in the windows that begin at -2 and at 0, d in those at 0 and at 2.
    assert results(text, a=[(0, 1)], b=[(1, 9)], c=[(1, 1)], d=[(2, 1)]) == [(1, 1)]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            f"SELECT a.k FROM a {HOP} JOIN b [HOP 4 SECONDS SLIDE 2 SECONDS] ON a.k = b.k",
            "the hopping windows of 'a' and 'b' differ",
        ),
        (f"SELECT x.k FROM (SELECT k, ts FROM a) {HOP} AS x", "[HOP ..] after a SELECT is not supported"),
    ],
)
def test_refused(text: str, problem: str) -> None:
    with pytest.raises(QueryError) as caught:
        braid.parse(text)
    assert caught.value.problem == problem
    assert caught.value.span is not None
