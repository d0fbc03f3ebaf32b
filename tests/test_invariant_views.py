"""Tables, and SELECTs and window functions in FROM: the results are those of the oracle."""

import pytest

import braid
from braid.testing import assert_same_rows, oracle
from braid.testing.view_cases import random_views


def check(seed: int) -> int:
    case = random_views(seed)
    expected = oracle(case.text, case.streams, tables=case.tables)
    message = f"seed {seed}\n{case!r}"
    assert_same_rows(braid.run(case.text, case.streams, **case.options), expected, message=message)
    return expected.num_rows


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_views_and_tables(first: int) -> None:
    rows = sum(check(seed) for seed in range(first, first + 50))
    assert rows > 100


@pytest.mark.sweep
def test_sweep_of_views_and_tables() -> None:
    for seed in range(1_000, 21_000):
        check(seed)


TEXTS = {
    "a view in EXISTS": "SELECT a.n FROM a [NOW] "
    "WHERE EXISTS (SELECT 1 FROM (SELECT k FROM b WHERE v > 1) [RANGE 9 SECONDS] AS q WHERE q.k = a.k)",
    "a view in NOT IN": "WITH q AS (SELECT k, ts FROM b WHERE k IS NOT NULL UNION ALL SELECT v, ts FROM c WHERE v > 2) "
    "SELECT a.n FROM a [NOW] WHERE a.k NOT IN (SELECT q.k FROM q [RANGE 3 SECONDS])",
    "a table in EXISTS' condition": "SELECT a.n, t.w FROM a [NOW], t "
    "WHERE t.k = a.k AND EXISTS (SELECT 1 FROM b [RANGE 5 SECONDS] WHERE b.k = a.k AND b.v <> t.w)",
    "groups of hopping windows": "SELECT k, unix_micros(window_start) AS begin, unix_micros(window_end) AS finish, "
    "COUNT(*) AS rows, SUM(v) AS total FROM HOP(TABLE a, DESCRIPTOR(ts), INTERVAL 2 SECONDS, INTERVAL 5 SECONDS) "
    "GROUP BY window_start, window_end, k",
    "groups of rows with a table": "SELECT t.name, window.start, COUNT(*) AS rows "
    "FROM a [RANGE 7 SECONDS] LEFT JOIN t ON t.k = a.k GROUP BY t.name, WINDOW(event_time, '3 seconds')",
    "a view twice": "WITH q AS (SELECT * FROM a WHERE v > 0) "
    "SELECT x.n AS xn, y.n AS yn FROM q [RANGE 3 SECONDS] AS x JOIN q [TUMBLE 5 SECONDS] AS y ON x.k = y.k",
    "joins in brackets beside a view": "SELECT x.n AS xn, b.n AS bn, c.n AS cn "
    "FROM (SELECT * FROM a WHERE v > 0) [RANGE 3 SECONDS] AS x "
    "LEFT JOIN (b [RANGE 2 SECONDS] JOIN c [RANGE 5 SECONDS] ON b.k = c.k) ON b.k = x.k",
    "a window function over a union": "WITH q AS (SELECT k, n, ts FROM a UNION ALL SELECT k, n + 100, ts FROM b) "
    "SELECT x.n, c.n AS cn, x.window_end FROM TUMBLE(TABLE q, DESCRIPTOR(ts), INTERVAL 4 SECONDS) AS x "
    "JOIN c [NOW] ON c.k = x.k JOIN t ON t.k = x.k",
}


@pytest.mark.parametrize("name", TEXTS)
def test_views_and_tables_beside_everything_else(name: str) -> None:
    rows = 0
    for seed in range(8):
        case = random_views(seed)
        expected = oracle(TEXTS[name], case.streams, tables=case.tables)
        options = case.options | {"plan": None}
        assert_same_rows(braid.run(TEXTS[name], case.streams, **options), expected, types=False, message=repr(case))
        rows += expected.num_rows
    assert rows
