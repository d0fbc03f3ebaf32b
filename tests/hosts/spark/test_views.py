"""Tables, and SELECTs and window functions in FROM, on Spark."""

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from braid import QueryError, StreamError
from braid.errors import FileError
from braid.files.job import load
from braid.hosts.spark.driver.job_runner import open_queries
from braid.hosts.spark.driver.session import Session
from braid.testing import assert_same_rows, oracle
from braid.testing.stream_files import random_rows, with_last_row, write_stream
from tests.hosts.conftest import Feed, run_out, without_time

NAMES = pa.table({"k": [0, 1, 2, 2, 9, None], "name": ["zero", "one", "two", "zwei", "nine", None]})
TEXTS = pa.table({"t": ["text 1", "text 2"]})

EVERYTHING = """
WITH early AS (SELECT k, n * 10 AS n, t, ts FROM a WHERE n < 90)
SELECT x.n AS xn, y.n AS yn, y.side, v.name, c.n AS cn, c.window_start
FROM early [RANGE 20 SECONDS] AS x
JOIN (SELECT k, n, 'b' AS side, ts FROM b UNION ALL SELECT k, n, 'c' AS side, ts FROM c WHERE n > 20)
  [RANGE 10 SECONDS] AS y ON y.k = x.k AND y.n > 10
JOIN TUMBLE(TABLE c, DESCRIPTOR(ts), INTERVAL '15' SECONDS) AS c ON c.k = x.k
LEFT JOIN names AS v ON v.k = y.k
LEFT SEMI JOIN texts ON texts.t = x.t
"""


def declare(session: Session, frames: dict[str, Any], names: Any, texts: Any) -> None:
    for lateness, (name, frame) in enumerate(frames.items(), 1):
        session.stream(name, frame, lateness=f"{lateness} seconds")
    session.table("names", names)
    session.table("texts", texts)


def test_views_and_tables_go_on_where_they_were_stopped(session: Session, feed: Feed, tmp_path: Path) -> None:
    streams = {name: random_rows(seed) for seed, name in enumerate("abc")}
    frames = {name: feed(name, table, 40) for name, table in streams.items()}
    names, texts = (session.spark.createDataFrame(table) for table in (NAMES, TEXTS))
    declare(session, frames, names, texts)
    query = session.sql(EVERYTHING, shards=2)
    assert query.streams == ("a", "b", "c")
    assert query.text == EVERYTHING
    writer = query.dataframe.writeStream.format("parquet").option("path", str(tmp_path / "result"))
    started = writer.option("checkpointLocation", str(tmp_path / "result-checkpoint")).start()
    while not started.recentProgress:
        assert started.isActive, started.exception()
        time.sleep(0.05)
    started.stop()
    again = Session(session.spark)
    declare(again, frames, names, texts)
    result = without_time(run_out(again.sql(EVERYTHING, shards=2).dataframe, tmp_path))
    expected = oracle(EVERYTHING, streams, tables={"names": NAMES, "texts": TEXTS})
    assert expected.num_rows > 100
    assert_same_rows(result, expected)
    changed = again.sql(EVERYTHING.replace("n < 90", "n < 80"), shards=2)
    with pytest.raises(Exception, match="belongs to another query"):
        run_out(changed.dataframe, tmp_path)


def test_a_slow_branch_of_a_union_is_not_late(session: Session, feed: Feed, tmp_path: Path) -> None:
    """All rows of `b` come with the first file of `a`; the union waits for the slower of the two."""
    a, b = random_rows(1, 40), random_rows(2, 40)
    text = """SELECT x.n AS xn, y.n AS yn
              FROM (SELECT n, k, ts FROM a UNION ALL SELECT n + 100, k, ts FROM b) [ROWS 3] AS x,
                   a [RANGE 5 SECONDS] AS y WHERE x.k = y.k AND y.n >= 0"""
    ends = {"a": with_last_row(a, key=-1), "b": with_last_row(b, key=-2)}
    session.stream("a", feed("a", ends["a"], 5))
    session.stream("b", feed("b", ends["b"], 41))
    result = without_time(run_out(session.sql(text, shards=2).dataframe, tmp_path))
    expected = oracle(text, ends)
    assert expected.num_rows > 10
    assert_same_rows(result, expected)


def test_queries_in_from(session: Session, feed: Feed, tmp_path: Path) -> None:
    """A join, groups of it, and a join of these with a stream: three stateful operators."""
    streams = {name: random_rows(seed) for seed, name in enumerate("abc")}
    for name, table in streams.items():
        session.stream(name, feed(name, with_last_row(table, key=-1), 40))
    text = """
    WITH pairs AS (SELECT a.k, b.n FROM a [RANGE 3 SECONDS], b [RANGE 3 SECONDS] WHERE a.k = b.k AND a.n >= 0),
    counts AS (
      SELECT p.k, COUNT(*) AS pairs, MAX(p.n) AS last
      FROM pairs [NOW] AS p GROUP BY p.k, WINDOW(event_time, '10 seconds')
    )
    SELECT c.n, q.pairs, q.last FROM counts [RANGE 5 SECONDS] AS q, c [RANGE 5 SECONDS] WHERE c.k = q.k AND c.n >= 0
    """
    result = without_time(run_out(session.sql(text, shards=2).dataframe, tmp_path))
    pairs = oracle(
        "SELECT a.k, b.n, greatest(a.ts, b.ts) AS at FROM a [RANGE 3 SECONDS], b [RANGE 3 SECONDS] WHERE a.k = b.k",
        streams,
    )
    grouped = pairs.append_column("window", pa.compute.floor_temporal(pairs.column("at"), 10, "second"))
    grouped = grouped.group_by(["k", "window"]).aggregate([("k", "count"), ("n", "max")])
    ends = pa.compute.add(grouped.column("window").cast(pa.int64()), 10_000_000 - 1)
    counts = grouped.append_column("ts", ends.cast(pa.timestamp("us", "UTC")))
    counts = counts.rename_columns({"k_count": "pairs", "n_max": "last"})
    expected = oracle(
        "SELECT c.n, q.pairs, q.last FROM q [RANGE 5 SECONDS], c [RANGE 5 SECONDS] WHERE c.k = q.k",
        {"q": counts, "c": streams["c"]},
    )
    assert expected.num_rows > 10
    assert_same_rows(result, expected)


def test_a_table_that_is_refreshed(session: Session, feed: Feed, tmp_path: Path) -> None:
    directory = tmp_path / "table"
    directory.mkdir()
    pq.write_table(pa.table({"k": [1], "name": ["old"]}), directory / "1.parquet")
    session.stream("a", feed("a", random_rows(1, 40), 40))
    session.table("t", session.spark.read.parquet(str(directory)), refresh=True)
    query = session.sql("SELECT a.n, t.name FROM a [NOW] JOIN t ON t.k = a.k", shards=1)
    run_out(query.dataframe, tmp_path)
    pq.write_table(pa.table({"k": [2], "name": ["new"]}), directory / "2.parquet")
    query.refreshed[0]._jdf.queryExecution().analyzed().refresh()
    names = {row.name for row in session.spark.read.parquet(str(directory)).collect()}
    assert names == {"old", "new"}
    assert run_out(query.dataframe, tmp_path, name="again").column("name").unique().sort().to_pylist() == ["new", "old"]


def test_tables_of_a_job_file(session: Session, tmp_path: Path) -> None:
    """They are declared with the streams; a query must not write where its table is read."""
    (tmp_path / "names").mkdir()
    (tmp_path / "names" / "1.csv").write_text("k,name\n1,one\n")
    write_stream(tmp_path / "a", random_rows(1, 10), 10)
    file = tmp_path / "job.yaml"
    file.write_text(f"""
streams: |
  CREATE STREAM a (ts TIMESTAMP(3), k BIGINT, n BIGINT, t STRING, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND)
  WITH ('format' = 'parquet', 'path' = 'a');
tables:
  names: {{format: csv, path: names, options: {{header: true}}, schema: 'k LONG, name STRING'}}
queries:
  named:
    sql: SELECT a.n, m.name FROM a [NOW] JOIN names AS m ON m.k = a.k
    sink: {{format: json, path: results}}
    checkpoint: {tmp_path / "checkpoint"}
""")
    ((_, query),) = open_queries(session, load(file))
    assert (query.streams, query.tables) == (("a",), ("names",))
    rows = without_time(run_out(query.dataframe, tmp_path))
    assert_same_rows(rows, oracle(query.text, {"a": random_rows(1, 10)}, tables={"names": NAMES.slice(1, 1)}))
    file.write_text(file.read_text().replace("path: results", "path: names"))
    with pytest.raises(FileError, match="which its table 'names' is read from"):
        open_queries(session, load(file))


def test_spark_functions_and_errors(session: Session, feed: Feed, tmp_path: Path) -> None:
    """A SELECT over one stream is Spark's own: its functions, and its errors, with the place in the text."""
    table = random_rows(1, 30)
    session.stream("a", feed("a", table, 30))
    # With ANSI mode, which is Spark's default, the cast would end the query.
    select = "SELECT sha2(t, 256) AS h, CAST(t AS INT) AS i, hour(TIMESTAMP '2024-01-01 05:00:00') AS o, n, ts FROM a"
    text = f"SELECT x.h, x.i, x.o FROM ({select}) [NOW] AS x WHERE x.n < 3"
    result = without_time(run_out(session.sql(text, shards=1).dataframe, tmp_path))
    assert all(len(value) == 64 for value in result.column("h").to_pylist())
    assert result.num_rows == 3
    assert (result.column("i").to_pylist(), result.column("o").to_pylist()) == ([None] * 3, [5] * 3)
    assert session.spark.conf.get("spark.sql.ansi.enabled") == "true"
    with pytest.raises(QueryError, match="nothing") as caught:
        session.sql("SELECT x.k FROM (SELECT nothing FROM a) [NOW] AS x")
    assert caught.value.span is not None
    with pytest.raises(StreamError, match="is a streaming DataFrame"):
        session.table("t", feed("b", table, 30))


def test_an_alias_stands_for_other_columns_within_a_view(session: Session) -> None:
    """`a.x` is an array inside and a text outside, so `REVERSE(a.x)` has two types in one text."""
    moments = pa.array([datetime(2024, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC"))
    rows = pa.table({"ts": moments, "x": pa.array([[1, 2]], pa.list_(pa.int32())), "k": [1]})
    session.stream("lists", session.spark.createDataFrame(rows))
    session.stream("texts", session.spark.createDataFrame(pa.table({"ts": moments, "x": ["abc"], "k": [1]})))
    inner = """SELECT REVERSE(a.x) AS r, a.k FROM lists [RANGE 1 MINUTE] AS a, texts [RANGE 1 MINUTE] AS t
        WHERE a.k = t.k AND REVERSE(a.x)[0] = 2"""
    text = f"""SELECT v.r, REVERSE(a.x) AS back FROM ({inner}) [RANGE 1 MINUTE] AS v, texts [RANGE 1 MINUTE] AS a
        WHERE v.k = a.k AND REVERSE(a.x) = 'cba'"""
    assert without_time(session.sql(text).dataframe.toArrow()).to_pylist() == [{"r": [2, 1], "back": "cba"}]


def test_views_with_functions_of_spark(session: Session) -> None:
    """A view with a function of Spark's, and such functions over it: as a key, in SELECT, and over a table's column."""
    streams = {name: random_rows(seed) for seed, name in enumerate("ab")}
    for name, table in streams.items():
        session.stream(name, session.spark.createDataFrame(table))
    session.table("names", session.spark.createDataFrame(NAMES))
    text = """
        WITH early AS (SELECT {k} AS k, n, ts FROM a WHERE n < 90)
        SELECT DISTINCT x.n AS xn, b.n AS bn, {name} AS name
        FROM early [RANGE 20 SECONDS] AS x JOIN b [RANGE 20 SECONDS] ON {left} = {right} JOIN names v ON v.k = x.k"""
    left, right = "soundex(concat('k', x.k))", "soundex(concat('k', b.k))"
    of_spark = text.format(k="cast(bround(k) AS BIGINT)", name="initcap(v.name)", left=left, right=right)
    plain = text.format(k="k", name="concat(upper(substr(v.name, 1, 1)), substr(v.name, 2))", left="1", right="1")
    result = without_time(pa.Table.from_batches(session.sql(of_spark, shards=2).dataframe.toArrow().to_batches()))
    # The soundex of k0, k1, .. is that of k: every pair of rows meets.
    assert_same_rows(result, oracle(plain, streams, tables={"names": NAMES}))
