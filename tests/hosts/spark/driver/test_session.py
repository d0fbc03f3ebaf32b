"""Queries on Spark: what comes out equals the oracle's answer, whatever goes in and whatever happens on the way."""

import gc
import re
import time
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from braid.errors import ModelError, QueryError, StreamError
from braid.hosts.spark.driver.listener import listener_of
from braid.hosts.spark.driver.query import SparkQuery
from braid.hosts.spark.driver.session import Session
from braid.hosts.spark.shared.cache_space import CACHE
from braid.model.statistics import Statistics
from braid.testing import assert_same_rows, oracle
from tests.hosts.spark.conftest import Feed, run_out

ROWS = 120
THREE = """SELECT a.n AS an, b.n AS bn, c.n AS cn
           FROM a [RANGE 20 SECONDS], b [RANGE 20 SECONDS], c [RANGE 20 SECONDS] WHERE a.k = b.k AND b.k = c.k"""


def rows_of(seed: int, rows: int = ROWS, keys: int = 6) -> pa.Table:
    generator = np.random.default_rng(seed)
    times = np.sort(generator.integers(0, 60_000_000, rows))
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "k": generator.integers(0, keys, rows),
            "n": np.arange(rows),
            "t": pa.array([f"text {key}" for key in generator.integers(0, keys, rows)]),
        }
    )


def declare(session: Session, feed: Feed, names: str, rows: int = 40) -> dict[str, pa.Table]:
    tables = {name: rows_of(seed) for seed, name in enumerate(names)}
    for name, table in tables.items():
        session.stream(name, feed(name, table, rows), time="ts", lateness="1 second")
    return tables


def without_time(result: pa.Table) -> pa.Table:
    return result.drop_columns(["event_time"])


QUERIES = {
    "one attribute": THREE,
    "chain": """SELECT a.n AS an, b.t AS bt, c.n AS cn FROM a [RANGE 9 SECONDS], b [RANGE 9 SECONDS], c [UNBOUNDED]
                WHERE a.k = b.k AND b.t = c.t""",
    "theta": "SELECT a.n AS an, b.n AS bn FROM a [RANGE 4 SECONDS], b [RANGE 3 SECONDS] WHERE a.k < b.k + 1",
    "self join": "SELECT x.n AS xn, y.n AS yn FROM a [RANGE 9 SECONDS] AS x, a [NOW] AS y WHERE x.t = y.t AND y.k > 2",
    "one stream": "SELECT a.n * 2 AS twice, a.t FROM a [NOW] WHERE a.k % 2 = 0",
}


@pytest.mark.parametrize("name", QUERIES)
def test_streams_give_what_the_oracle_gives(name: str, session: Session, feed: Feed, tmp_path: Path) -> None:
    tables = declare(session, feed, "abc")
    result = run_out(session.sql(QUERIES[name]).dataframe, tmp_path)
    assert_same_rows(without_time(result), oracle(QUERIES[name], tables))


def test_rows_are_counted_over_the_whole_stream(session: Session, feed: Feed, tmp_path: Path) -> None:
    """With a last row that lets everything before it be known."""
    text = "SELECT a.n AS an, b.n AS bn FROM a [ROWS 5], b [PARTITION BY t ROWS 1] WHERE a.k = b.k"
    tables = {}
    for seed, name in enumerate("ab"):
        table = rows_of(seed)
        end = {"ts": pa.array([10**9], table.schema.field("ts").type), "k": [-1 - seed], "n": [-1], "t": ["end"]}
        tables[name] = pa.concat_tables([table, pa.table(end)])
        session.stream(name, feed(name, tables[name], 50))
    result = run_out(session.sql(text, shards=4).dataframe, tmp_path)
    assert_same_rows(without_time(result), oracle(text, tables))


def test_columns_may_have_the_names_of_ours(session: Session, feed: Feed, tmp_path: Path) -> None:
    """Spark does not tell names apart by case."""
    tables = declare(session, feed, "a")
    text = "SELECT a.k AS EVENT_TIME, a.n AS _STATISTICS, a.t FROM a [NOW]"
    result = run_out(session.sql(text).dataframe, tmp_path)
    assert_same_rows(result.drop_columns(["_event_time"]), oracle(text, tables))


def test_tables_that_are_no_streams_give_a_table(session: Session, spark: Any) -> None:
    tables = {name: rows_of(seed) for seed, name in enumerate("abc")}
    for name, table in tables.items():
        session.stream(name, spark.createDataFrame(table))
    result = session.sql(THREE).dataframe
    assert not result.isStreaming
    assert_same_rows(without_time(result.toArrow()), oracle(THREE, tables))
    twice = session.sql("SELECT a.n, b.n FROM a [UNBOUNDED], b [UNBOUNDED] WHERE a.n = b.n AND a.n = 7").dataframe
    assert twice.columns == ["n", "n", "event_time"]
    assert [tuple(row)[:2] for row in twice.collect()] == [(7, 7)]


def test_a_query_goes_on_where_it_was_stopped(session: Session, feed: Feed, tmp_path: Path) -> None:
    """Stopped in the middle, restarted on its checkpoint by another session with no cache."""
    tables = declare(session, feed, "abc", rows=30)
    checkpoint, out = str(tmp_path / "result-checkpoint"), str(tmp_path / "result")
    writer = session.sql(THREE).dataframe.writeStream.format("parquet").option("path", out)
    started = writer.option("checkpointLocation", checkpoint).start()
    while not started.recentProgress:
        assert started.isActive, started.exception()
        time.sleep(0.05)
    started.stop()
    again = Session(session.spark)
    for name in "abc":
        again.stream(name, session._dataframes[name], lateness="1 second")
    assert_same_rows(without_time(run_out(again.sql(THREE).dataframe, tmp_path)), oracle(THREE, tables))


def test_a_sink_of_ones_own_may_look_at_a_batch_twice(session: Session, feed: Feed, tmp_path: Path) -> None:
    """Spark then runs the operator again, from the state before the batch."""
    tables = declare(session, feed, "abc")
    counts: list[int] = []
    found: list[pa.Table] = []

    def look_twice(batch: DataFrame, _: int) -> None:
        counts.append(batch.count())
        found.append(batch.toArrow())

    writer = session.sql(THREE).dataframe.writeStream.foreachBatch(look_twice).trigger(availableNow=True)
    writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()
    assert counts == [batch.num_rows for batch in found]
    assert_same_rows(without_time(pa.concat_tables(found)), oracle(THREE, tables))


def test_the_plan_changes_while_the_query_runs(session: Session, feed: Feed, tmp_path: Path) -> None:
    tables = declare(session, feed, "abc", rows=30)
    query = session.sql(THREE)
    query.pin({"a": ["c", "b"], "b": ["c", "a"], "c": ["b", "a"]})
    result = run_out(query.dataframe, tmp_path)
    assert_same_rows(without_time(result), oracle(THREE, tables))
    assert re.search(r"new rows of a: .*\n  1. probe c", query.explain())


def test_the_operator_reports(session: Session, feed: Feed, tmp_path: Path) -> None:
    tables = declare(session, feed, "abc")
    query = session.sql(THREE)
    assert query.progress() is None
    assert query.statistics() == Statistics()
    result = run_out(query.dataframe, tmp_path)
    expected = {"rows_in": 3 * ROWS, "rows_out": result.num_rows}
    progress = reported(query, expected)
    assert progress["total"] == expected
    assert progress["late"] == {"a": 0, "b": 0, "c": 0}
    assert 0 < progress["state_rows"] <= 3 * ROWS
    assert oracle(THREE, tables).num_rows == result.num_rows
    found = query.statistics()
    assert found.rates == pytest.approx(dict.fromkeys("abc", ROWS / 60), rel=0.3)
    assert found.selectivities["a.k = b.k"] == pytest.approx(1 / 6, rel=0.5)
    assert all(0 < found.populations[name] <= ROWS for name in "abc")
    assert "about" in query.explain()


def test_rows_that_are_copied_to_several_shards_are_counted_once(session: Session, feed: Feed, tmp_path: Path) -> None:
    """And those of the last batch, which have no event time."""
    tables = {"a": rows_of(0), "b": rows_of(1)}
    untimed = tables["b"].slice(0, 3).set_column(0, "ts", pa.nulls(3, tables["b"].schema.field("ts").type))
    tables["b"] = pa.concat_tables([tables["b"], untimed])
    for name, table in tables.items():
        session.stream(name, feed(name, table, 40), lateness="1 second")
    query = session.sql(QUERIES["theta"], shards=4)
    assert query._spec.router.copies(["a"]) > 1
    result = run_out(query.dataframe, tmp_path)
    assert_same_rows(without_time(result), oracle(QUERIES["theta"], tables))
    progress = reported(query, {"rows_in": 2 * ROWS, "rows_out": result.num_rows})
    assert progress["late"] == {"a": 0, "b": 0}
    assert progress["untimed"] == {"a": 0, "b": 3}


def test_a_query_that_its_maker_let_go_of_is_looked_after(session: Session, feed: Feed, tmp_path: Path) -> None:
    declare(session, feed, "abc")
    listener = listener_of(session.spark)
    before = {*listener.queries}
    writer = session.sql(THREE).dataframe.writeStream.format("noop")
    running = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        gc.collect()
        (name,) = {*listener.queries} - before
        running.processAllAvailable()
        assert reported(listener.queries[name], {"rows_in": 3 * ROWS, "rows_out": ANY})
    finally:
        running.stop()
    assert listener.wait_for_end(str(running.runId), 60)
    assert name not in listener.queries


def test_observations_of_others_do_not_disturb_reports(session: Session, feed: Feed, tmp_path: Path) -> None:
    """An interval is of a type that a row of Spark's has no text for. What was kept for the run goes with it."""
    declare(session, feed, "a")
    query = session.sql("SELECT a.k FROM a [NOW]")
    length = (F.max("event_time") - F.min("event_time")).alias("length")
    run = query.dataframe.observe("of others", length).writeStream.format("noop").trigger(availableNow=True)
    handle = run.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    handle.awaitTermination()
    listener = listener_of(session.spark)
    assert listener.wait_for_end(str(handle.runId), 60)
    assert str(handle.runId) not in listener._running
    progress = query.progress()
    assert progress is not None
    assert progress["total"] == {"rows_in": ROWS, "rows_out": ROWS}
    assert not (session._directory / query.name / CACHE).exists()


def reported(query: SparkQuery, total: dict[str, int]) -> dict[str, Any]:
    """What the query reports once all has arrived: reports come a moment after results."""
    for _ in range(600):
        progress = query.progress()
        if progress is not None and progress["total"] == total:
            break
        time.sleep(0.1)
    assert progress is not None
    return progress


def test_wrong_input_is_told(session: Session, spark: Any) -> None:
    with pytest.raises(StreamError, match="stream 'a' is int; give a Spark DataFrame"):
        session.stream("a", 7)  # type: ignore[arg-type]
    with pytest.raises(StreamError, match="has no event-time column 'ts'"):
        session.stream("a", spark.range(3))
    with pytest.raises(QueryError, match="there is no stream 'a'"):
        session.sql("SELECT a.k FROM a [NOW]")
    with pytest.raises(ModelError, match="the number of shards must be 1 or more, not -1"):
        session.sql("SELECT a.k FROM a [NOW]", shards=-1)
    collated = spark.range(3).selectExpr("current_timestamp() AS ts", "array('x' COLLATE UTF8_LCASE) AS names")
    with pytest.raises(StreamError, match="'names' of stream 'a' is array<string collate UTF8_LCASE>, and texts"):
        session.stream("a", collated)
    session.stream("a", spark.range(3).select("id", F.current_timestamp().alias("ts")))
    with pytest.raises(StreamError, match="idle_timeout is 'soon', which is not a duration"):
        session.sql("SELECT a.id FROM a [NOW]", idle_timeout="soon")


def test_partitions_without_shards_are_warned_of(
    session: Session, spark: Any, caplog: pytest.LogCaptureFixture
) -> None:
    rate = spark.readStream.format("rate").load().withColumnRenamed("timestamp", "ts")
    session.stream("a", rate)
    before = spark.conf.get("spark.sql.shuffle.partitions")
    try:
        for partitions in ("2", "20"):
            spark.conf.set("spark.sql.shuffle.partitions", partitions)
            session.sql("SELECT a.value FROM a [NOW]", shards=2)
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)
    (warned,) = [record.getMessage() for record in caplog.records if "shuffle.partitions" in record.getMessage()]
    assert warned.startswith("spark.sql.shuffle.partitions is 20 and the query has ")
