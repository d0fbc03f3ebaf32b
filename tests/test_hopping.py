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
