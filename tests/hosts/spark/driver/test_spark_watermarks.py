"""Braid's watermarks beside Spark's: what is in time for one is not too late for the other, also after a pause."""

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
from braid.hosts.spark.driver.failures import told
from braid.hosts.spark.driver.session import Session
from braid.testing import assert_same_rows, oracle
from tests.hosts.spark.conftest import run_out, written

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)

WAVES = [
    {"a": [(5, 1), (5, 2), (5, 9)], "b": [(5, 1)]},
    {"a": [], "b": [(5, 1), (5, 2)]},
    {"a": [(6, 1), (7, 3)], "b": [(7, 3)]},
    {"a": [(7, 4)], "b": [(7, 4)]},
    {"a": [(1_000, -1)], "b": [(1_000, -2)]},
]
"""Seconds and keys; the last wave lets everything before it be known."""


def table(rows: list[tuple[int, int]], origin: datetime = NOON) -> pa.Table:
    times = [origin + timedelta(seconds=second) for second, _ in rows]
    keys = [key for _, key in rows]
    return pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC")), "k": pa.array(keys, pa.int64())})


def stream(spark: Any, directory: Path, files: int = 1_000) -> Any:
    directory.mkdir()
    reader = spark.readStream.schema("ts timestamp, k long").option("maxFilesPerTrigger", files)
    return reader.parquet(str(directory))


def play(dataframe: Any, waves: list[dict[str, list[tuple[int, int]]]], tmp_path: Path) -> pa.Table:
    """What a running query has written when each wave of rows has come after it was done with the one before."""
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


def told_of(waves: list[dict[str, list[tuple[int, int]]]], name: str) -> pa.Table:
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
    """While it has nothing to do, Spark's watermark comes up to the newest rows, and no row later than that follows."""
    for name in "ab":
        session.stream(name, stream(spark, tmp_path / name))
    found = play(session.sql(text).dataframe, WAVES, tmp_path)
    given = {name: told_of(WAVES, name) for name in "ab"}
    known = pc.field("k") > 0
    assert_same_rows(found.select(["k"]), oracle(text, given).filter(known))


def test_what_is_late_to_a_watermark_of_their_own_is_late(session: Session, spark: Any, tmp_path: Path) -> None:
    """Spark's watermark has moved while there was nothing to do: it would end the query for a result that is older."""
    for name in "ab":
        session.stream(name, stream(spark, tmp_path / name).withWatermark("ts", "2 seconds"))
    text = "SELECT a.ts, b.k FROM a [RANGE 5 SECONDS], b [RANGE 5 SECONDS] WHERE a.k = b.k"
    late = (4, 1)
    waves = [{"a": [(5, 1), (9, 2)], "b": [(4, 1), (9, 2)]}, {"a": [late, (8, 1)]}, {"b": [(12, 2)]}]
    query = session.sql(text)
    found = play(query.dataframe, waves, tmp_path)
    given = {name: told_of(waves, name) for name in "ab"}
    given["a"] = table([row for wave in waves for row in wave.get("a", []) if row != late])
    assert_same_rows(found.select(["ts", "k"]), oracle(text, given))


def test_a_watermark_of_their_own_is_the_only_word_on_time(session: Session, spark: Any, tmp_path: Path) -> None:
    marked = stream(spark, tmp_path / "a").withWatermark("ts", "1 hour")
    with pytest.raises(StreamError, match="stream 'a' has a watermark already"):
        session.stream("a", marked, lateness="1 hour")
    session.stream("a", marked)
    with pytest.raises(StreamError, match="which only its rows move, not idle_timeout"):
        session.sql("SELECT a.k FROM a [NOW]", idle_timeout="1 second")


def test_groups_of_what_with_has_named_are_in_time(session: Session, spark: Any, tmp_path: Path) -> None:
    """They are as old as Spark's watermark was in the batch before, whatever the text that groups looks like."""
    stream(spark, tmp_path / "a").withWatermark("ts", "1 second").createOrReplaceTempView("marked")
    named = (
        "WITH few AS (SELECT * FROM marked WHERE k > 0) SELECT k, window FROM few GROUP BY k, window(ts, '10 seconds')"
    )
    session.stream("a", spark.sql(f"SELECT k, window_time(window) AS ts FROM ({named})"))
    waves = [{"a": [(1, 1), (2, 1)]}, {"a": [(50, 2)]}, {"a": [(70, 3)]}]
    found = play(session.sql("SELECT a.k FROM a [NOW]").dataframe, waves, tmp_path)
    assert sorted(found.column("k").to_pylist()) == [1, 2]


def test_the_time_of_a_stream_is_the_column_that_has_the_watermark(
    session: Session, spark: Any, tmp_path: Path
) -> None:
    """Results have times of their own, and may hold older ones; so do groups."""
    session.stream("a", stream(spark, tmp_path / "a"))
    result = session.sql("SELECT a.ts, a.k FROM a [NOW]").dataframe
    with pytest.raises(StreamError, match="'b' has a watermark on 'event_time' and is declared by 'ts'"):
        session.stream("b", result)
    session.stream("b", result, time="event_time")
    groups = stream(spark, tmp_path / "c").withWatermark("ts", "1 second").groupBy(F.window("ts", "1 minute")).count()
    with pytest.raises(StreamError, match="window_time makes one"):
        session.stream("c", groups.withColumn("ts", F.col("window.start")))
    session.stream("c", groups.withColumn("ts", F.window_time("window")))
    session.stream("d", spark.readStream.schema(result.schema).parquet(str(tmp_path / "a")))


def test_groups_do_not_wait_for_a_stream_that_is_silent(session: Session, spark: Any, tmp_path: Path) -> None:
    """Both the engine's watermark and Spark's pass it by."""
    for name in "ab":
        session.stream(name, stream(spark, tmp_path / name))
    query = session.sql(
        "SELECT a.k, COUNT(*) AS n FROM a [RANGE 5 SECONDS], b [RANGE 5 SECONDS] WHERE a.k = b.k "
        "GROUP BY a.k, WINDOW(event_time, '10 seconds')",
        idle_timeout="10 milliseconds",
    )
    waves = [{"a": [(5, 1)], "b": [(5, 1), (6, 1)]}, *({"a": [(20 + second, 2)]} for second in range(4))]
    found = play(query.dataframe, waves, tmp_path)
    assert found.select(["k", "n"]).to_pylist() == [{"k": 1, "n": 2}]
    progress = query.progress()
    assert progress is not None
    assert progress["rejected_messages"] == 0


def test_a_query_on_another_checkpoint_hears_who_is_silent_there(session: Session, spark: Any, tmp_path: Path) -> None:
    for name in "ab":
        session.stream(name, stream(spark, tmp_path / name, files=1))
    text = "SELECT a.k FROM a [RANGE 1 SECOND], b [RANGE 1 SECOND] WHERE a.k = b.k"
    query = session.sql(text, idle_timeout="10 milliseconds")
    waves = [{"a": [(second, second)], "b": [(second, second)] if second < 3 else []} for second in range(6)]
    assert play(query.dataframe, waves, tmp_path).num_rows == 3
    assert run_out(query.dataframe, tmp_path, name="again").num_rows == 3


def test_streams_are_the_same_whatever_the_order_they_are_declared_in(
    session: Session, spark: Any, tmp_path: Path
) -> None:
    """A checkpoint of Spark's knows sources by their places."""
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


def test_results_before_spark_counts_time_are_refused_in_words(session: Session, spark: Any, tmp_path: Path) -> None:
    session.stream("a", stream(spark, tmp_path / "a"))
    pq.write_table(table([(0, 1)], datetime(1969, 7, 20, tzinfo=UTC)), tmp_path / "a" / "0.parquet")
    writer = session.sql("SELECT a.k FROM a [NOW]").dataframe.writeStream.format("noop")
    started = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    with pytest.raises(StreamingQueryException) as raised:
        started.awaitTermination()
    assert re.search("event times up to 1970-01-01", told(raised.value))


def test_rows_may_come_as_late_as_they_like(session: Session, spark: Any, tmp_path: Path) -> None:
    """Spark reads no length of time as long as Python's longest."""
    session.stream("a", stream(spark, tmp_path / "a"), lateness=timedelta.max)
    assert session.sql("SELECT a.k FROM a [NOW]").dataframe.isStreaming
