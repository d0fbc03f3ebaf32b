"""GROUP BY on Spark: groups are a stream again, and groups of a stream need a window."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812

from braid.errors import QueryError
from braid.hosts.spark.driver.session import Session
from braid.testing import assert_same_rows, oracle
from braid.testing.stream_files import random_rows, with_last_row
from tests.hosts.conftest import Feed, run_out, without_time

FROM = "FROM a [RANGE 9 SECONDS], b [RANGE 9 SECONDS] WHERE a.k = b.k"
GROUPS = f"SELECT a.k, COUNT(*) AS n {FROM} GROUP BY a.k, WINDOW(event_time, '10 seconds')"


def test_groups_can_be_grouped_again(session: Session, feed: Feed, tmp_path: Path) -> None:
    tables = {name: with_last_row(random_rows(seed), -1 - seed) for seed, name in enumerate("ab")}
    for name, table in tables.items():
        session.stream(name, feed(name, table, 40), lateness="1 second")
    minutes = session.sql(GROUPS).dataframe.groupBy(F.window("event_time", "30 seconds")).agg(F.sum("n").alias("n"))
    result = run_out(minutes.select("window.start", "n"), tmp_path)
    expected = oracle(f"SELECT window.start, COUNT(*) AS n {FROM} GROUP BY WINDOW(event_time, '30 seconds')", tables)
    assert_same_rows(result, expected, types=False)


def test_groups_of_a_stream_need_a_window(session: Session, feed: Feed) -> None:
    for seed, name in enumerate("ab"):
        session.stream(name, feed(name, random_rows(seed), 40))
    with pytest.raises(QueryError, match="this query groups by no window"):
        session.sql(f"SELECT COUNT(*) AS n {FROM}")


def test_aggregates_of_different_values(session: Session, feed: Feed, tmp_path: Path) -> None:
    """Spark has none over streams; sets of values that it collects are exact."""
    tables = {name: with_last_row(random_rows(seed), -1 - seed) for seed, name in enumerate("ab")}
    for name, table in tables.items():
        session.stream(name, feed(name, table, 40), lateness="1 second")
    text = f"""
    SELECT a.k, window.end, COUNT(DISTINCT b.t) AS texts, SUM(DISTINCT a.n % 7) AS total, AVG(DISTINCT a.n) AS mean,
           SUM(DISTINCT CAST(b.n % 5 AS DECIMAL(9, 2))) AS price, SUM(DISTINCT IF(a.n % 2 = 0, 0.0D, -0.0D)) AS zero,
           COUNT(DISTINCT IF(a.n < 0, a.n, NULL)) AS none, SUM(DISTINCT IF(a.n < 0, a.n, NULL)) AS nothing,
           COUNT(DISTINCT b.t) FILTER (WHERE b.n > 50) AS late
    {FROM} GROUP BY a.k, WINDOW(event_time, '20 seconds', '10 seconds') HAVING COUNT(DISTINCT b.t) > 1"""
    result = without_time(run_out(session.sql(text, shards=2).dataframe, tmp_path))
    expected = oracle(text, tables)
    assert expected.num_rows > 10
    assert_same_rows(result, expected, types=False)


def test_sessions_and_filtered_aggregates_of_spark(session: Session, feed: Feed, tmp_path: Path) -> None:
    """A session ends one gap after its last result, and a result that comes exactly then belongs to the next one."""
    seconds = [0, 1, 3, 5, 8, 8, 20, 100]
    rows = pa.table(
        {
            "ts": pa.array([(3_600 + second) * 1_000_000 for second in seconds], pa.timestamp("us", "UTC")),
            "k": [1, 2, 1, 1, 1, 2, 1, 3],
            "n": [5, 6, 7, 8, 9, 3, 1, 0],
        }
    )
    session.stream("a", feed("a", rows, 3), lateness="1 second")
    text = """
    SELECT k, session_window.start, session_window.end, COUNT(*) AS count,
           COLLECT_LIST(n) FILTER (WHERE n <> 7) AS others, MAX_BY(n, ts) FILTER (WHERE n < 9) AS latest,
           FIRST(n) FILTER (WHERE n > 5) AS first, BOOL_AND(n > 4) FILTER (WHERE k = 1) AS large
    FROM a [NOW] GROUP BY k, SESSION_WINDOW(event_time, '3 seconds')"""
    result = without_time(run_out(session.sql(text).dataframe, tmp_path))
    found = {(row["k"], row["start"].second): row for row in result.to_pylist()}
    sessions = {key: (row["end"].second, row["count"]) for key, row in found.items()}
    assert sessions == {
        (1, 0): (3, 1),
        (1, 3): (8, 2),
        (1, 8): (11, 1),
        (1, 20): (23, 1),
        (2, 1): (4, 1),
        (2, 8): (11, 1),
    }
    first = found[1, 0]
    assert (first["others"], first["latest"], first["first"], first["large"]) == ([5], 5, None, True)
    second = found[1, 3]
    assert (second["others"], second["latest"], second["first"], second["large"]) == ([8], 8, 7, True)
    assert found[2, 1]["large"] is None
