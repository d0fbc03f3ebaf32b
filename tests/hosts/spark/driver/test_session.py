"""Sessions and queries on Spark: restarts, reports, names of columns, and wrong input."""

import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from braid.errors import ModelError, QueryError, StreamError
from braid.hosts.spark.driver.session import Session
from braid.model.statistics import Statistics
from braid.testing import assert_same_rows, oracle
from braid.testing.stream_files import ROWS, THREE_WAY_JOIN, random_rows
from tests.hosts.conftest import Feed, declare, reported, run_out, without_time

THETA = "SELECT a.n AS an, b.n AS bn FROM a [RANGE 4 SECONDS], b [RANGE 3 SECONDS] WHERE a.k < b.k + 1"


def test_columns_may_have_the_names_that_braid_uses(session: Session, feed: Feed, tmp_path: Path) -> None:
    """Spark ignores the case of names."""
    tables = declare(session, feed, "a")
    text = "SELECT a.k AS EVENT_TIME, a.n AS _STATISTICS, a.t FROM a [NOW]"
    result = run_out(session.sql(text).dataframe, tmp_path)
    assert_same_rows(result.drop_columns(["_event_time"]), oracle(text, tables))


def test_the_result_of_tables_is_a_table_and_columns_may_have_the_same_name(session: Session, spark: Any) -> None:
    for seed, name in enumerate("abc"):
        session.stream(name, spark.createDataFrame(random_rows(seed)))
    assert not session.sql(THREE_WAY_JOIN).dataframe.isStreaming
    twice = session.sql("SELECT a.n, b.n FROM a [UNBOUNDED], b [UNBOUNDED] WHERE a.n = b.n AND a.n = 7").dataframe
    assert twice.columns == ["n", "n", "event_time"]
    assert [tuple(row)[:2] for row in twice.collect()] == [(7, 7)]


def test_a_query_goes_on_where_it_was_stopped(session: Session, feed: Feed, tmp_path: Path) -> None:
    """It is stopped before the end, and another session without a cache starts it again on its checkpoint.

    Its plan has parts, trees among them, which the checkpoint keeps.
    """
    tables = declare(session, feed, "abc", rows=30)
    first = session.sql(THREE_WAY_JOIN)
    parts = [({"k": [0, 1]}, (("a", "b"), "c")), ("rest", {"a": ["c", "b"], "b": ["c", "a"], "c": ["b", "a"]})]
    first.pin(parts)
    checkpoint, out = str(tmp_path / "result-checkpoint"), str(tmp_path / "result")
    writer = first.dataframe.writeStream.format("parquet").option("path", out)
    started = writer.option("checkpointLocation", checkpoint).start()
    while not started.recentProgress:
        assert started.isActive, started.exception()
        time.sleep(0.05)
    started.stop()
    again = Session(session.spark, adapt=False)
    for name in "abc":
        again.stream(name, session._dataframes[name], lateness="1 second")
    resumed = again.sql(THREE_WAY_JOIN)
    assert_same_rows(without_time(run_out(resumed.dataframe, tmp_path)), oracle(THREE_WAY_JOIN, tables))
    reported(resumed, {})
    assert resumed.plan == first.plan
    assert re.search(r"\nk in \(0, 1\):\n    kept: \(a ⋈ b\)\n", resumed.explain())


def test_a_foreach_batch_sink_may_evaluate_a_batch_twice(session: Session, feed: Feed, tmp_path: Path) -> None:
    """Spark runs the operator again then, from the state before the batch."""
    tables = declare(session, feed, "abc")
    counts: list[int] = []
    results: list[pa.Table] = []

    def evaluate_twice(batch: DataFrame, _: int) -> None:
        counts.append(batch.count())
        results.append(batch.toArrow())

    writer = session.sql(THREE_WAY_JOIN).dataframe.writeStream.foreachBatch(evaluate_twice).trigger(availableNow=True)
    writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()
    assert counts == [batch.num_rows for batch in results]
    assert_same_rows(without_time(pa.concat_tables(results)), oracle(THREE_WAY_JOIN, tables))


def test_the_plan_changes_while_the_query_runs(session: Session, feed: Feed, tmp_path: Path) -> None:
    """The text has no windows: the default window is the same to all that follows."""
    tables = declare(session, feed, "abc", rows=30)
    query = session.sql(THREE_WAY_JOIN.replace(" [RANGE 20 SECONDS]", ""), window="20 seconds")
    query.pin({"a": ["c", "b"], "b": ["c", "a"], "c": ["b", "a"]})
    result = run_out(query.dataframe, tmp_path)
    assert_same_rows(without_time(result), oracle(THREE_WAY_JOIN, tables))
    assert re.search(r"new rows of a: .*\n  1. probe c", query.explain())


def test_progress_and_statistics_come_from_the_reports(session: Session, feed: Feed, tmp_path: Path) -> None:
    tables = declare(session, feed, "abc")
    query = session.sql(THREE_WAY_JOIN)
    assert query.progress() is None
    assert query.statistics() == Statistics()
    result = run_out(query.dataframe, tmp_path)
    expected = {"rows_in": 3 * ROWS, "rows_joined": result.num_rows, "rows_out": result.num_rows}
    progress = reported(query, expected)
    assert expected.items() <= progress["total"].items()
    assert progress["late"] == {"a": 0, "b": 0, "c": 0}
    assert 0 < progress["state_rows"] <= 3 * ROWS
    assert oracle(THREE_WAY_JOIN, tables).num_rows == result.num_rows
    statistics = query.statistics()
    assert statistics.rates == pytest.approx(dict.fromkeys("abc", ROWS / 60), rel=0.3)
    assert statistics.selectivities["a.k = b.k"] == pytest.approx(1 / 6, rel=0.5)
    assert all(0 < statistics.populations[name] <= ROWS for name in "abc")
    assert "about" in query.explain()


def test_rows_that_are_copied_to_several_shards_are_counted_once(session: Session, feed: Feed, tmp_path: Path) -> None:
    """So are rows without an event time, which come in the last batch."""
    tables = {"a": random_rows(0), "b": random_rows(1)}
    untimed = tables["b"].slice(0, 3).set_column(0, "ts", pa.nulls(3, tables["b"].schema.field("ts").type))
    tables["b"] = pa.concat_tables([tables["b"], untimed])
    for name, table in tables.items():
        session.stream(name, feed(name, table, 40), lateness="1 second")
    query = session.sql(THETA, shards=4)
    assert query._spec.router.copies(["a"]) > 1
    result = run_out(query.dataframe, tmp_path)
    assert_same_rows(without_time(result), oracle(THETA, tables))
    progress = reported(query, {"rows_in": 2 * ROWS, "rows_out": result.num_rows})
    assert progress["late"] == {"a": 0, "b": 0}
    assert progress["untimed"] == {"a": 0, "b": 3}


def test_wrong_input_is_refused(session: Session, spark: Any) -> None:
    with pytest.raises(StreamError, match="stream 'a' is int; give a Spark DataFrame"):
        session.stream("a", 7)  # type: ignore[arg-type]
    with pytest.raises(StreamError, match="has no event-time column 'ts'"):
        session.stream("a", spark.range(3))
    with pytest.raises(QueryError, match="there is no stream 'a'"):
        session.sql("SELECT a.k FROM a [NOW]")
    with pytest.raises(ModelError, match="the number of shards must be 1 or more, not -1"):
        session.sql("SELECT a.k FROM a [NOW]", shards=-1)
    collated = spark.range(3).selectExpr("current_timestamp() AS ts", "array('x' COLLATE UTF8_LCASE) AS names")
    with pytest.raises(
        StreamError, match="'names' of stream 'a' is array<string collate UTF8_LCASE>, and Braid compares texts"
    ):
        session.stream("a", collated)
    session.stream("a", spark.range(3).select("id", F.current_timestamp().alias("ts")))
    with pytest.raises(StreamError, match="idle_timeout is 'soon', which is not a duration"):
        session.sql("SELECT a.id FROM a [NOW]", idle_timeout="soon")


def test_threads_make_queries_in_one_spark(session: Session, spark: Any) -> None:
    """Spark's registry of data sources refused a source that two threads gave it at the same time."""
    session.stream("a", spark.readStream.format("rate").load().withColumnRenamed("timestamp", "ts"))

    def make(_: int) -> list[str]:
        return list(session.sql("SELECT a.value FROM a [NOW]").dataframe.columns)

    with ThreadPoolExecutor(8) as pool:
        assert set(map(tuple, pool.map(make, range(24)))) == {("value", "event_time")}


def test_a_setting_that_loses_results_gives_a_warning(
    session: Session, spark: Any, caplog: pytest.LogCaptureFixture
) -> None:
    session.stream("a", spark.readStream.format("rate").load().withColumnRenamed("timestamp", "ts"))
    try:
        for reuse in ("false", "true"):
            spark.conf.set("spark.sql.exchange.reuse", reuse)
            session.sql("SELECT a.value FROM a [NOW]")
    finally:
        spark.conf.set("spark.sql.exchange.reuse", "false")
    (warning,) = [record.getMessage() for record in caplog.records if "exchange.reuse" in record.getMessage()]
    assert "set it to false before you start the query" in warning


def test_too_many_partitions_for_the_shards_give_a_warning(
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
    (warning,) = [record.getMessage() for record in caplog.records if "shuffle.partitions" in record.getMessage()]
    assert warning.startswith("spark.sql.shuffle.partitions is 20 and the query has ")
