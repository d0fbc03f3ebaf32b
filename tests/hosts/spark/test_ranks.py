"""ROW_NUMBER on Spark: the best results of each window, over streams and over tables."""

import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from braid import QueryError
from braid.hosts.spark.driver.session import Session
from braid.testing import assert_same_rows, oracle
from braid.testing.rank_cases import random_ranks
from braid.testing.stream_files import random_rows, with_last_row
from tests.hosts.conftest import Feed, run_out, without_time

BEST_BIDS = """
SELECT * FROM (
  SELECT k, n, t, window_end,
         ROW_NUMBER() OVER (PARTITION BY window_start, window_end, k ORDER BY t DESC, n NULLS LAST) AS rank
  FROM HOP(TABLE a, DESCRIPTOR(ts), INTERVAL '4' SECONDS, INTERVAL '10' SECONDS)
) WHERE rank <= 2
"""

HOT_ITEMS = """
SELECT k, bids, rank, ends, concat_ws('-', rank_name, 'y') AS name FROM (
  SELECT k, bids, ends, upper('x') AS rank_name,
         ROW_NUMBER() OVER (PARTITION BY window_end ORDER BY bids DESC) AS rank
  FROM (
    SELECT x.k, COUNT(*) AS bids, window.end AS window_end, unix_micros(window.end) AS ends
    FROM a [RANGE 2 SECONDS] AS x JOIN b [RANGE 3 SECONDS] AS y ON x.k = y.k AND x.n >= 0
    GROUP BY x.k, WINDOW(event_time, '8 seconds', '3 seconds') HAVING COUNT(*) > 1
  )
) WHERE rank <= 3
"""


def complete(session: Session, feed: Feed, rows_per_file: int) -> dict[str, pa.Table]:
    """Streams whose last row comes so late that all windows with other rows are over."""
    streams = {name: random_rows(seed) for seed, name in enumerate("ab")}
    for name, rows in streams.items():
        session.stream(name, feed(name, with_last_row(rows, key=-1), rows_per_file), lateness="2 seconds")
    return streams


def test_the_best_rows_of_each_window_go_on_where_they_were_stopped(
    session: Session, feed: Feed, tmp_path: Path
) -> None:
    streams = complete(session, feed, 30)
    query = session.sql(BEST_BIDS, shards=2)
    writer = query.dataframe.writeStream.format("parquet").option("path", str(tmp_path / "result"))
    started = writer.option("checkpointLocation", str(tmp_path / "result-checkpoint")).start()
    while not started.recentProgress:
        assert started.isActive, started.exception()
        time.sleep(0.05)
    started.stop()
    result = without_time(run_out(session.sql(BEST_BIDS, shards=2).dataframe, tmp_path))
    expected = oracle(BEST_BIDS, streams)
    assert expected.num_rows > 50
    assert_same_rows(result, expected)
    changed = session.sql(BEST_BIDS.replace("rank <= 2", "rank <= 3"), shards=2)
    with pytest.raises(Exception, match="ranks its results otherwise"):
        run_out(changed.dataframe, tmp_path)


def test_the_best_groups_of_each_window_are_a_stream_again(session: Session, feed: Feed, tmp_path: Path) -> None:
    """A join, its groups, the best of these, and a join with a stream. With HAVING, the groups come from Python."""
    streams = complete(session, feed, 60)
    assert "then keep the first 3 of each" in session.sql(HOT_ITEMS, shards=2).explain()
    text = f"""SELECT hot.k, hot.bids, hot.rank, hot.ends, hot.name, b.n
               FROM ({HOT_ITEMS}) [RANGE 5 SECONDS] AS hot JOIN b [RANGE 5 SECONDS] ON b.k = hot.k"""
    result = without_time(run_out(session.sql(text, shards=2).dataframe, tmp_path))
    hot = oracle(HOT_ITEMS.replace("concat_ws('-', rank_name, 'y')", "concat(rank_name, '-y')"), streams)
    times = pc.subtract(hot.column("ends"), 1).cast(pa.timestamp("us", "UTC"))
    joined = (
        "SELECT hot.k, bids, rank, ends, name, b.n FROM hot [RANGE 5 SECONDS], b [RANGE 5 SECONDS] WHERE b.k = hot.k"
    )
    expected = oracle(joined, {"hot": hot.append_column("ts", times), "b": streams["b"]})
    assert expected.num_rows > 20
    assert_same_rows(result, expected, types=False)


@pytest.mark.parametrize("seed", range(2))
def test_tables_are_ranked_as_streams_are(session: Session, seed: int) -> None:
    case = random_ranks(seed)
    for name, rows in case.streams.items():
        session.stream(name, session.spark.createDataFrame(rows), lateness="100 seconds")
    result = session.sql(case.text, shards=1).dataframe.toArrow()
    assert_same_rows(without_time(result), oracle(case.text, case.streams), types=False, message=repr(case))


def test_a_ranking_without_a_window_is_refused(session: Session, feed: Feed) -> None:
    session.stream("a", feed("a", random_rows(1, 4), 4))
    text = "SELECT k FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY n DESC) AS rn FROM a) WHERE rn <= 10"
    with pytest.raises(QueryError, match="ranks of a stream are final only within a window of time"):
        session.sql(text)
