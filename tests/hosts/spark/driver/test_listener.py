"""The listener: which runs and queries it follows, what it hands on, and what it removes when a run has ended."""

import gc
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import ANY

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812

from braid.adapt.observation import Observation
from braid.hosts.spark.driver.listener import Listener, listener_of
from braid.hosts.spark.driver.session import Session
from braid.hosts.spark.shared.cache_space import CACHE
from braid.runtime.report import Seconds, ShardReport, StateSize, StreamProgress
from braid.testing.stream_files import ROWS, THREE_WAY_JOIN, random_rows
from tests.hosts.conftest import Feed, declare, reported, run_out


def end_of(run: str) -> Any:
    """Spark's event for the end of a run."""
    return SimpleNamespace(runId=lambda: SimpleNamespace(toString=lambda: run))


def test_a_query_that_the_program_has_dropped_still_gets_its_reports(
    session: Session, feed: Feed, tmp_path: Path
) -> None:
    declare(session, feed, "abc")
    listener = listener_of(session.spark)
    before = {*listener.queries}
    writer = session.sql(THREE_WAY_JOIN).dataframe.writeStream.format("noop")
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


def test_other_observations_do_not_disturb_reports(session: Session, feed: Feed, tmp_path: Path) -> None:
    """Here one of an interval, a type that `Row.json` in the JVM cannot write. When the run ends, its cache goes."""
    declare(session, feed, "a")
    query = session.sql("SELECT a.k FROM a [NOW]")
    length = (F.max("event_time") - F.min("event_time")).alias("length")
    run = query.dataframe.observe("other", length).writeStream.format("noop").trigger(availableNow=True)
    handle = run.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    handle.awaitTermination()
    listener = listener_of(session.spark)
    assert listener.wait_for_end(str(handle.runId), 60)
    assert str(handle.runId) not in listener._running
    progress = query.progress()
    assert progress is not None
    assert progress["total"] == {
        "rows_in": ROWS,
        "rows_joined": ROWS,
        "rows_out": ROWS,
        "late": {"a": 0},
        "untimed": {"a": 0},
    }
    assert not (session._directory / query.name / CACHE).exists()


def test_only_the_newest_run_of_a_query_is_followed(spark: Any, caplog: pytest.LogCaptureFixture) -> None:
    listener = Listener(spark)
    for run in ("first", "second"):
        listener._running[run] = set()
    assert listener._is_followed("first", "query")
    assert listener._is_followed("second", "query")
    assert not listener._is_followed("first", "query")
    assert listener._is_followed("second", "query")
    assert [record.getMessage() for record in caplog.records] == [
        "query query runs more than once; only its newest run is watched, and decides on the plan"
    ]
    del listener._running["second"]
    assert listener._is_followed("first", "query")


def test_the_cache_of_a_query_stays_until_its_last_run_ends(spark: Any, tmp_path: Path) -> None:
    listener = Listener(spark)
    listener.directories.add(tmp_path)
    listener._running = {"first": {"query"}, "second": {"query"}}
    cache = tmp_path / "query" / CACHE
    cache.mkdir(parents=True)
    listener.onQueryTerminated(end_of("first"))
    assert cache.exists()
    listener.onQueryTerminated(end_of("second"))
    assert not cache.exists()


def test_a_query_that_the_program_has_dropped_can_be_started_again(session: Session, feed: Feed) -> None:
    declare(session, feed, "abc")
    name, listener = session.sql(THREE_WAY_JOIN).name, session._listener
    listener._running["first"] = {name}
    listener.onQueryTerminated(end_of("first"))
    gc.collect()
    assert listener._query(name) is not None


def test_every_run_of_a_query_has_its_own_idle_streams(session: Session, feed: Feed) -> None:
    declare(session, feed, "abc")
    query = session.sql(THREE_WAY_JOIN, idle_timeout="2 seconds")
    for second in range(4):
        for run in ("first", "second"):
            # In the second run, stream c becomes idle later. Taken for one run, c would be active in every other batch.
            active = {"a": True, "b": True, "c": run == "second" and second < 2}
            progress = {alias: StreamProgress(is_active, second) for alias, is_active in active.items()}
            report = ShardReport({}, Observation({}), (), progress, 0, 0, 0, StateSize(), "new", Seconds())
            query.pass_idle(run, report.to_json(), run, second)
    sent = {path.name: json.loads(path.read_text())["reached"] for path in query._control.directory.iterdir()}
    lateness = 1_000_000
    assert sent == {"reached-first.json": {"c": 3 + lateness}, "reached-second.json": {"c": 3 + lateness}}


def test_a_silent_stream_that_results_wait_for_is_named_once(
    session: Session, feed: Feed, spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Stream b never brings a row. One row of a is late, one has no time: both are counted in all."""
    rows = random_rows(0)
    last = pa.array([0, None], pa.timestamp("us", "UTC"))
    rows = pa.concat_tables([rows.slice(0, 118), rows.slice(118).set_column(0, "ts", last)])
    session.stream("a", feed("a", rows, 12), lateness="1 second")
    (tmp_path / "empty").mkdir()
    empty = spark.readStream.schema(session._dataframes["a"].schema).parquet(str(tmp_path / "empty"))
    session.stream("b", empty)
    query = session.sql("SELECT a.n FROM a [NOW] WHERE NOT EXISTS (SELECT * FROM b [NOW] WHERE b.k = a.k)")
    assert run_out(query.dataframe, tmp_path).num_rows == 0
    progress = reported(query, {"rows_in": 119})
    assert progress["waiting"] == 118
    assert progress["total"]["late"] == {"a": 1, "b": 0}
    assert progress["total"]["untimed"] == {"a": 1, "b": 0}
    warnings = [record.getMessage() for record in caplog.records if "brought no rows" in record.getMessage()]
    assert len(warnings) == 1
    assert "stream 'b' has brought no rows in the last 5 micro-batches, and 60 results wait for it" in warnings[0]
    assert "idle_timeout" in warnings[0]
