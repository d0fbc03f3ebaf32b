"""GROUP BY on Spark: its own aggregation gives what the oracle gives, of streams and of tables."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812

from braid.errors import QueryError
from braid.hosts.spark.driver.session import Session
from braid.testing import assert_same_rows, oracle
from tests.hosts.spark.conftest import Feed, run_out
from tests.hosts.spark.driver.test_session import rows_of

FROM = "FROM a [RANGE 9 SECONDS], b [RANGE 9 SECONDS] WHERE a.k = b.k"
PLAIN = f"""SELECT a.k, window.start, window.end AS ends, COUNT(*) AS n, SUM(b.n) AS s, MAX(b.t) AS `most of all`
            {FROM} GROUP BY a.k, WINDOW(event_time, '10 seconds')"""
COMPUTED = f"""SELECT window.start, SUM(a.n) / COUNT(b.n) AS r, AVG(a.n) AS g, MIN(b.t) AS t
               {FROM} GROUP BY WINDOW(event_time, '10 seconds', '4 seconds') HAVING COUNT(*) > 20 AND MIN(a.n) > 3"""
WHOLE = f"SELECT COUNT(*) AS n, SUM(a.n) AS s, SUM(CAST(a.n AS DECIMAL(10, 2))) AS d {FROM}"


def ended(seed: int) -> pa.Table:
    """With a last row long after all others, so that every window before it is complete."""
    table = rows_of(seed)
    end = {"ts": pa.array([10**9], table.schema.field("ts").type), "k": [-1 - seed], "n": [-1], "t": ["end"]}
    return pa.concat_tables([table, pa.table(end)])


def test_streams_are_grouped(session: Session, feed: Feed, tmp_path: Path) -> None:
    """Both at once: what Spark selects by itself, and what is computed of groups."""
    tables = {name: ended(seed) for seed, name in enumerate("ab")}
    for name, table in tables.items():
        session.stream(name, feed(name, table, 40), lateness="1 second")
    for number, text in enumerate((PLAIN, COMPUTED)):
        result = run_out(session.sql(text).dataframe, tmp_path, name=f"result-{number}")
        assert result.num_rows > 5
        assert_same_rows(result.drop_columns(["event_time"]), oracle(text, tables), types=False)


def test_groups_are_a_stream_again(session: Session, feed: Feed, tmp_path: Path) -> None:
    tables = {name: ended(seed) for seed, name in enumerate("ab")}
    for name, table in tables.items():
        session.stream(name, feed(name, table, 40), lateness="1 second")
    minutes = session.sql(PLAIN).dataframe.groupBy(F.window("event_time", "30 seconds")).agg(F.sum("n").alias("n"))
    result = run_out(minutes.select("window.start", "n"), tmp_path)
    wanted = oracle(f"SELECT window.start, COUNT(*) AS n {FROM} GROUP BY WINDOW(event_time, '30 seconds')", tables)
    assert_same_rows(result, wanted, types=False)


def test_tables_are_grouped(session: Session, spark: Any) -> None:
    tables = {name: rows_of(seed) for seed, name in enumerate("ab")}
    for name, table in tables.items():
        session.stream(name, spark.createDataFrame(table))
    for text in (PLAIN, COMPUTED, WHOLE):
        result = session.sql(text).dataframe.toArrow()
        shown = [name for name in result.column_names if name != "event_time"]
        assert_same_rows(result.select(shown), oracle(text, tables), types=False)


def test_a_stream_is_grouped_by_time(session: Session, feed: Feed) -> None:
    for seed, name in enumerate("ab"):
        session.stream(name, feed(name, rows_of(seed), 40))
    with pytest.raises(QueryError, match="this query groups by no window"):
        session.sql(WHOLE)
