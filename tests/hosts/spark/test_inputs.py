"""Inputs of queries on Spark: every type, every name, no rows at all, watermarks; and further use of the results."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F  # noqa: N812

from braid.errors import StreamError
from braid.hosts.spark.driver.session import Session
from braid.testing import assert_same_rows, oracle
from braid.testing.stream_files import random_rows, with_last_row
from tests.hosts.conftest import Feed, run_out, without_time, written

NOON = datetime(2024, 1, 31, 12, 30)
KEYS = {
    "truth": pa.array([True, False, None]),
    "tiny": pa.array([1, -1, None], pa.int8()),
    "small": pa.array([300, -300, None], pa.int16()),
    "int": pa.array([70_000, 0, None], pa.int32()),
    "big": pa.array([2**40, -1, None], pa.int64()),
    "float": pa.array([1.5, float("nan"), None], pa.float32()),
    "double": pa.array([0.1, float("inf"), None], pa.float64()),
    "decimal": pa.array([Decimal("1.25"), Decimal("-99999999.99"), None], pa.decimal128(10, 2)),
    "string": pa.array(["text", "", None]),
    "binary": pa.array([b"\x00\xff", b"", None]),
    "date": pa.array([date(2024, 1, 31), date(1960, 2, 29), None]),
    "instant": pa.array([NOON.replace(tzinfo=UTC), datetime(1960, 1, 1, tzinfo=UTC), None], pa.timestamp("us", "UTC")),
    "local time": pa.array([NOON, datetime(1960, 1, 1), None], pa.timestamp("us")),
}
STRUCT = pa.struct({"x": pa.int32(), "y": pa.list_(pa.string())})
NESTED = {
    "array": pa.array([[1, None], [], None], pa.list_(pa.int32())),
    "struct": pa.array([{"x": 1, "y": ["a"]}, {"x": None, "y": None}, None], STRUCT),
    "map": pa.array([[("k", 1.5)], [], None], pa.map_(pa.string(), pa.float64())),
    "map of structs": pa.array(
        [[({"x": 1, "y": ["a"]}, [[("k", 2)], None])], [], None],
        pa.map_(STRUCT, pa.list_(pa.map_(pa.string(), pa.int64()))),
    ),
}
INTERVAL = {"interval": pa.array([timedelta(seconds=5), timedelta(days=-1), None], pa.duration("us"))}
TIME = "the time of `it`.all"


def table_of(columns: dict[str, pa.Array]) -> pa.Table:
    times = pa.array([NOON.replace(tzinfo=UTC)] * 3, pa.timestamp("us", "UTC"))
    return pa.table({TIME: times, "my number": pa.array([0, 1, 2]), **columns})


def text_of(keys: list[str], columns: list[str]) -> str:
    equal = " AND ".join(f"l.{quoted(name)} <=> r.{quoted(name)}" for name in ["my number", *keys])
    shown = ", ".join(f"r.{quoted(name)}" for name in columns)
    return f"SELECT {shown} FROM `left side` [NOW] AS l, other [NOW] AS r WHERE {equal}"


def quoted(name: str) -> str:
    escaped = name.replace("`", "``")
    return f"`{escaped}`"


def as_rows(table: pa.Table) -> list[str]:
    """Rows as texts, in order, so that NaN equals NaN."""
    return [repr(row) for row in sorted(table.to_pylist(), key=lambda row: row["my number"])]


def test_streams_of_every_type_and_name(session: Session, feed: Feed, tmp_path: Path) -> None:
    """Each type that can be compared is a key; all types, nested ones too, are selected."""
    table = table_of(KEYS | NESTED)
    for name in ("left side", "other"):
        session.stream(name, feed(name, table, 2), time=TIME)
    text = text_of(list(KEYS), table.column_names)
    result = run_out(session.sql(text).dataframe, tmp_path)
    assert as_rows(result.select(table.column_names)) == as_rows(table)


def test_tables_of_every_type(session: Session, spark: Any) -> None:
    table = table_of(KEYS | NESTED | INTERVAL)
    dataframe = spark.createDataFrame(table).withColumn("local time", F.col("local time").cast("timestamp_ntz"))
    for name in ("left side", "other"):
        session.stream(name, dataframe, time=TIME)
    result = session.sql(text_of([*KEYS, "interval"], table.column_names)).dataframe.toArrow()
    assert as_rows(result.select(table.column_names)) == as_rows(table)


def test_a_stream_may_have_no_rows_yet_and_another_a_thousand_times_as_many(
    session: Session, spark: Any, feed: Feed, tmp_path: Path
) -> None:
    text = "SELECT few.n AS fn, many.n AS mn FROM few [RANGE 5 SECONDS], many [RANGE 1 SECOND] WHERE few.k = many.k"
    few, many = random_rows(0, rows=20, keys=500), random_rows(1, rows=20_000, keys=500)
    session.stream("many", feed("many", many, 5_000), lateness="100 seconds")
    directory = tmp_path / "streams" / "few"
    directory.mkdir()
    schema = session._dataframes["many"].schema
    session.stream("few", spark.readStream.schema(schema).parquet(str(directory)), lateness="100 seconds")
    query = session.sql(text)
    assert run_out(query.dataframe, tmp_path).num_rows == 0
    pq.write_table(few, directory / "0.parquet")
    result = run_out(query.dataframe, tmp_path)
    assert result.num_rows > 50
    assert_same_rows(without_time(result), oracle(text, {"few": few, "many": many}))


def test_results_can_be_processed_further_by_spark(session: Session, feed: Feed, spark: Any, tmp_path: Path) -> None:
    """Two queries of one session run at once: the result of one is joined with a table, that of the other grouped."""
    tables = {name: with_last_row(random_rows(seed), -1 - seed) for seed, name in enumerate("ab")}
    for name, table in tables.items():
        session.stream(name, feed(name, table, 60), lateness="1 second")
    source = "FROM a [RANGE 9 SECONDS], b [RANGE 9 SECONDS] WHERE a.k = b.k"
    names = pa.table({"k": np.arange(6), "name": [f"number {key}" for key in range(6)]})
    joined = session.sql(f"SELECT a.k, a.n AS an, b.n AS bn {source}").dataframe
    named = joined.join(F.broadcast(spark.createDataFrame(names)), "k").drop("event_time", "k")
    counted = session.sql(f"SELECT a.k {source}").dataframe.groupBy(F.window("event_time", "10 seconds")).count()
    started = {
        name: dataframe.writeStream.format("parquet")
        .option("path", str(tmp_path / name))
        .option("checkpointLocation", str(tmp_path / f"{name}-checkpoint"))
        .trigger(availableNow=True)
        .start()
        for name, dataframe in {"named": named, "counted": counted.select("window.start", "count")}.items()
    }
    for running in started.values():
        running.awaitTermination()
    expected = oracle(f"SELECT a.n AS an, b.n AS bn, CONCAT('number ', CAST(a.k AS STRING)) AS name {source}", tables)
    assert_same_rows(written(tmp_path / "named"), expected)
    expected = oracle(
        f"SELECT window.start, COUNT(*) AS count {source} GROUP BY WINDOW(event_time, '10 seconds')", tables
    )
    assert_same_rows(written(tmp_path / "counted"), expected)


def test_two_aggregates_of_one_query_can_be_joined(session: Session, feed: Feed, tmp_path: Path) -> None:
    """If Spark reused the shuffle below them, the second would never learn of a watermark, and there were no rows."""
    tables = {name: with_last_row(random_rows(seed), -1 - seed) for seed, name in enumerate("ab")}
    for name, table in tables.items():
        session.stream(name, feed(name, table, 60), lateness="1 second")
    source = "FROM a [RANGE 9 SECONDS], b [RANGE 9 SECONDS] WHERE a.k = b.k"
    joined = session.sql(f"SELECT a.n {source}").dataframe
    window = F.window("event_time", "10 seconds")
    counted, highest = joined.groupBy(window).count(), joined.groupBy(window).agg(F.max("n").alias("highest"))
    both = counted.join(highest, "window").select("window.start", "count", "highest")
    grouped = f"{source} GROUP BY WINDOW(event_time, '10 seconds')"
    expected = oracle(f"SELECT window.start, COUNT(*) AS count, MAX(a.n) AS highest {grouped}", tables)
    assert_same_rows(run_out(both, tmp_path), expected)


def test_streams_may_come_with_a_watermark(session: Session, feed: Feed, tmp_path: Path) -> None:
    """Streams that Spark has deduplicated, and the results of a query, which another query joins."""
    tables = {name: random_rows(seed) for seed, name in enumerate("abc")}
    streams = {name: feed(name, pa.concat_tables([table] * 2), 60) for name, table in tables.items()}
    for name, dataframe in streams.items():
        watermarked = dataframe.withWatermark("ts", "2 minutes")
        session.stream(name, watermarked.dropDuplicatesWithinWatermark(["n"]))
    inner = "SELECT a.k, a.n AS an, b.ts AS ts FROM a [RANGE 9 SECONDS], b [NOW] WHERE a.k = b.k"
    outer = "SELECT j.an, c.n AS cn FROM j [RANGE 3 SECONDS], c [RANGE 5 SECONDS] WHERE j.k = c.k"
    first = session.sql(inner).dataframe
    session.stream("j", first.drop("ts"), time="event_time")
    result = run_out(session.sql(outer).dataframe, tmp_path)
    expected = oracle(outer, {"j": oracle(inner, tables), "c": tables["c"]})
    assert_same_rows(without_time(result), expected)
    with pytest.raises(StreamError, match="stream 'a' has a watermark of Spark's, and results of this query wait"):
        session.sql("SELECT a.n FROM a [ROWS 3], c [NOW] WHERE a.k = c.k")


def test_tables_and_streams_do_not_mix(session: Session, feed: Feed, spark: Any) -> None:
    session.stream("a", feed("a", random_rows(0), 60))
    session.stream("b", spark.createDataFrame(random_rows(1)))
    with pytest.raises(StreamError, match="'b' is a table and other streams of the query are not"):
        session.sql("SELECT a.n FROM a [NOW], b [NOW] WHERE a.k = b.k")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM a [RANGE 9 SECONDS], b [RANGE 9 SECONDS] WHERE a.k = b.k",
        "SELECT COUNT(*) AS n, MAX(a.n) + 1 AS n FROM a [RANGE 9 SECONDS], b [NOW] WHERE a.k = b.k "
        "GROUP BY WINDOW(event_time, '10 seconds')",
    ],
)
def test_two_columns_of_one_name(session: Session, feed: Feed, spark: Any, tmp_path: Path, text: str) -> None:
    tables = {name: with_last_row(random_rows(seed), -1 - seed) for seed, name in enumerate("ab")}
    for name, table in tables.items():
        session.stream(name, feed(name, table, 60), lateness="1 second")
    dataframe = session.sql(text).dataframe
    sink = f"two_columns_{tmp_path.name}"
    writer = dataframe.writeStream.format("memory").queryName(sink)
    writer.option("checkpointLocation", str(tmp_path / "state")).trigger(availableNow=True).start().awaitTermination()
    expected = oracle(text, tables)
    result = spark.table(sink).drop("event_time").toArrow()
    assert result.column_names == expected.column_names
    positions = [str(position) for position in range(expected.num_columns)]
    assert_same_rows(result.rename_columns(positions), expected.rename_columns(positions))
