"""GROUP BY on Spark: groups are a stream again, and groups of a stream need a window."""

from pathlib import Path

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
