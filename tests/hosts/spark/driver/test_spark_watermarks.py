"""Braid's watermarks and Spark's: a row that is in time for one is in time for the other, also after a pause."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F  # noqa: N812

from braid.errors import StreamError
from braid.hosts.spark.driver.failures import failure_text
from braid.hosts.spark.driver.session import Session
from braid.testing import assert_same_rows, oracle
from tests.hosts.conftest import run_out, written

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)

Waves = list[dict[str, list[tuple[int, int]]]]
"""Rows that arrive together, by stream: event times in seconds, and keys."""

WAVES: Waves = [
    {"a": [(5, 1), (5, 2), (5, 9)], "b": [(5, 1)]},
    {"a": [], "b": [(5, 1), (5, 2)]},
    {"a": [(6, 1), (7, 3)], "b": [(7, 3)]},
    {"a": [(7, 4)], "b": [(7, 4)]},
    {"a": [(1_000, -1)], "b": [(1_000, -2)]},
]
"""The last wave lets everything before it be decided."""


def table(rows: list[tuple[int, int]], origin: datetime = NOON) -> pa.Table:
    times = [origin + timedelta(seconds=second) for second, _ in rows]
    keys = [key for _, key in rows]
    return pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC")), "k": pa.array(keys, pa.int64())})


def stream(spark: Any, directory: Path, files: int = 1_000) -> Any:
    """A stream of files that tests write later, at most `files` in a micro-batch."""
    directory.mkdir()
    reader = spark.readStream.schema("ts timestamp, k long").option("maxFilesPerTrigger", files)
    return reader.parquet(str(directory))


def play(dataframe: Any, waves: Waves, tmp_path: Path) -> pa.Table:
    """The results of a running query; each wave of rows arrives when the query has finished the wave before."""
    writer = dataframe.writeStream.format("parquet").option("path", str(tmp_path / "result"))
    running = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        for number, wave in enumerate(waves):
            for name, rows in wave.items():
                if rows:
                    pq.write_table(table(rows), tmp_path / name / f"{number}.parquet")
            running.processAllAvailable()
    finally:
        running.stop()
    return written(tmp_path / "result")


def all_rows_of(waves: Waves, name: str) -> pa.Table:
    return table([row for wave in waves for row in wave.get(name, [])])


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a.k FROM a [RANGE 5 SECONDS], b [RANGE 5 SECONDS] WHERE a.k = b.k",
        "SELECT a.k FROM a [ROWS 3], b [ROWS 3] WHERE a.k = b.k",
        "SELECT a.k FROM a [NOW] WHERE NOT EXISTS (SELECT * FROM b [NOW] WHERE a.k = b.k)",
    ],
    ids=["by time", "by rows", "not exists"],
)
def test_after_a_pause_rows_at_the_watermark_are_in_time(
    text: str, session: Session, spark: Any, tmp_path: Path
) -> None:
    """During a pause, Spark's watermark catches up with the newest rows. Rows that come then are not later than it."""
    for name in "ab":
        session.stream(name, stream(spark, tmp_path / name))
    result = play(session.sql(text).dataframe, WAVES, tmp_path)
    tables = {name: all_rows_of(WAVES, name) for name in "ab"}
    decided = pc.field("k") > 0
    assert_same_rows(result.select(["k"]), oracle(text, tables).filter(decided))


def test_rows_that_are_late_for_a_watermark_of_sparks_are_late(session: Session, spark: Any, tmp_path: Path) -> None:
    """Spark's watermark moves on during a pause. It would end the query if a result were older than the watermark."""
    for name in "ab":
        session.stream(name, stream(spark, tmp_path / name).withWatermark("ts", "2 seconds"))
    text = "SELECT a.ts, b.k FROM a [RANGE 5 SECONDS], b [RANGE 5 SECONDS] WHERE a.k = b.k"
    late = (4, 1)
    waves = [{"a": [(5, 1), (9, 2)], "b": [(4, 1), (9, 2)]}, {"a": [late, (8, 1)]}, {"b": [(12, 2)]}]
    result = play(session.sql(text).dataframe, waves, tmp_path)
    tables = {name: all_rows_of(waves, name) for name in "ab"}
    tables["a"] = table([row for wave in waves for row in wave.get("a", []) if row != late])
    assert_same_rows(result.select(["ts", "k"]), oracle(text, tables))


def test_a_stream_with_a_watermark_of_sparks_has_no_lateness_and_no_idle_timeout(
    session: Session, spark: Any, tmp_path: Path
) -> None:
    marked = stream(spark, tmp_path / "a").withWatermark("ts", "1 hour")
    with pytest.raises(StreamError, match="stream 'a' has a watermark already"):
        session.stream("a", marked, lateness="1 hour")
    session.stream("a", marked)
    with pytest.raises(StreamError, match="and idle_timeout cannot move such a watermark"):
        session.sql("SELECT a.k FROM a [NOW]", idle_timeout="1 second")


def test_groups_of_a_common_table_expression_are_in_time(session: Session, spark: Any, tmp_path: Path) -> None:
    """Groups are as old as Spark's watermark was in the batch before, also if they are made from a WITH clause."""
    stream(spark, tmp_path / "a").withWatermark("ts", "1 second").createOrReplaceTempView("marked")
    named = (
        "WITH few AS (SELECT * FROM marked WHERE k > 0) SELECT k, window FROM few GROUP BY k, window(ts, '10 seconds')"
    )
    session.stream("a", spark.sql(f"SELECT k, window_time(window) AS ts FROM ({named})"))
    waves = [{"a": [(1, 1), (2, 1)]}, {"a": [(50, 2)]}, {"a": [(70, 3)]}]
    result = play(session.sql("SELECT a.k FROM a [NOW]").dataframe, waves, tmp_path)
    assert sorted(result.column("k").to_pylist()) == [1, 2]


def test_the_event_time_must_be_the_column_that_has_the_watermark(session: Session, spark: Any, tmp_path: Path) -> None:
    """Results and groups have an event time of their own, and may have columns with older times."""
    session.stream("a", stream(spark, tmp_path / "a"))
    result = session.sql("SELECT a.ts, a.k FROM a [NOW]").dataframe
    with pytest.raises(StreamError, match="'b' has a watermark on 'event_time', but its event time is 'ts'"):
        session.stream("b", result)
    session.stream("b", result, time="event_time")
    groups = stream(spark, tmp_path / "c").withWatermark("ts", "1 second").groupBy(F.window("ts", "1 minute")).count()
    with pytest.raises(StreamError, match="window_time makes such a column"):
        session.stream("c", groups.withColumn("ts", F.col("window.start")))
    session.stream("c", groups.withColumn("ts", F.window_time("window")))
    session.stream("d", spark.readStream.schema(result.schema).parquet(str(tmp_path / "a")))


def test_groups_do_not_wait_for_an_idle_stream(session: Session, spark: Any, tmp_path: Path) -> None:
    """Both the engine's watermark and Spark's pass it."""
    for name in "ab":
        session.stream(name, stream(spark, tmp_path / name))
    query = session.sql(
        "SELECT a.k, COUNT(*) AS n FROM a [RANGE 5 SECONDS], b [RANGE 5 SECONDS] WHERE a.k = b.k "
        "GROUP BY a.k, WINDOW(event_time, '10 seconds')",
        idle_timeout="10 milliseconds",
    )
    waves = [{"a": [(5, 1)], "b": [(5, 1), (6, 1)]}, *({"a": [(20 + second, 2)]} for second in range(4))]
    result = play(query.dataframe, waves, tmp_path)
    assert result.select(["k", "n"]).to_pylist() == [{"k": 1, "n": 2}]
    progress = query.progress()
    assert progress is not None
    assert progress["rejected_messages"] == 0


def test_streams_that_are_idle_on_one_checkpoint_are_not_idle_on_another(
    session: Session, spark: Any, tmp_path: Path
) -> None:
    for name in "ab":
        session.stream(name, stream(spark, tmp_path / name, files=1))
    text = "SELECT a.k FROM a [RANGE 1 SECOND], b [RANGE 1 SECOND] WHERE a.k = b.k"
    query = session.sql(text, idle_timeout="10 milliseconds")
    waves = [{"a": [(second, second)], "b": [(second, second)] if second < 3 else []} for second in range(6)]
    assert play(query.dataframe, waves, tmp_path).num_rows == 3
    assert run_out(query.dataframe, tmp_path, name="again").num_rows == 3


def test_streams_may_be_declared_in_another_order_after_a_restart(session: Session, spark: Any, tmp_path: Path) -> None:
    """A checkpoint of Spark's knows its sources only by their position."""
    text = "SELECT a.k FROM a [UNBOUNDED], b [UNBOUNDED] WHERE a.k = b.k"
    streams = {name: stream(spark, tmp_path / name) for name in "ab"}
    for number, names in enumerate(["ab", "ba"]):
        for name in "ab":
            pq.write_table(table([(number, 1)]), tmp_path / name / f"{number}.parquet")
        again = Session(spark)
        for name in names:
            again.stream(name, streams[name], lateness="1 hour")
        writer = again.sql(text).dataframe.writeStream.format("parquet").option("path", str(tmp_path / "result"))
        writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(
            availableNow=True
        ).start().awaitTermination()
    assert written(tmp_path / "result").num_rows == 4


def test_results_before_1970_are_refused_with_an_explanation(session: Session, spark: Any, tmp_path: Path) -> None:
    session.stream("a", stream(spark, tmp_path / "a"))
    pq.write_table(table([(0, 1)], datetime(1969, 7, 20, tzinfo=UTC)), tmp_path / "a" / "0.parquet")
    writer = session.sql("SELECT a.k FROM a [NOW]").dataframe.writeStream.format("noop")
    started = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    with pytest.raises(StreamingQueryException) as raised:
        started.awaitTermination()
    assert re.search("event times up to 1970-01-01", failure_text(raised.value))


def test_the_lateness_may_be_longer_than_any_interval_of_sparks(session: Session, spark: Any, tmp_path: Path) -> None:
    session.stream("a", stream(spark, tmp_path / "a"), lateness=timedelta.max)
    assert session.sql("SELECT a.k FROM a [NOW]").dataframe.isStreaming
