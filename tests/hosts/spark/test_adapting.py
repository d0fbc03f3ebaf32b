"""Plans that change on Spark: by themselves, when they are told to, and again after a crash; results never change."""

import gc
import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from braid.adapt.controller import Policy
from braid.adapt.observation import Observation
from braid.errors import PlanError
from braid.hosts.spark.driver.listener import Listener
from braid.hosts.spark.driver.query import SparkQuery
from braid.hosts.spark.driver.session import Session
from braid.hosts.spark.shared.cache_space import CACHE
from braid.runtime.report import Seconds, ShardReport, StateSize, StreamProgress
from braid.testing import assert_same_rows, oracle
from tests.hosts.local.test_adapting import FLIP, flipping
from tests.hosts.spark.conftest import Feed
from tests.hosts.spark.driver.test_session import THREE, declare, reported, rows_of, without_time

BATCHES = 14
IN_TEXT_ORDER = {"a": ["b", "c"], "b": ["a", "c"], "c": ["a", "b"]}
REVERSED = {"a": ["c", "b"], "b": ["c", "a"], "c": ["b", "a"]}


def start(query: SparkQuery, tmp_path: Path, name: str) -> Any:
    """A query as people run it, going on until it is stopped: only then are control messages taken in on the way."""
    writer = query.dataframe.writeStream.format("parquet").option("path", str(tmp_path / name))
    return writer.option("checkpointLocation", str(tmp_path / f"{name}-checkpoint")).start()


def result_of(tmp_path: Path, name: str) -> pa.Table:
    return without_time(pq.ParquetDataset(tmp_path / name).read())


def written(plan: Any) -> dict[str, list[str]]:
    return {head: list(rest) for head, rest in plan.items()}


def test_the_plan_follows_selectivities_that_flip(spark: Any, feed: Feed, tmp_path: Path) -> None:
    """Beside it, a query that is not to adapt, and gets garbage for control messages."""
    tables = flipping(BATCHES, 120)
    streams = {name: feed(name, table, 120) for name, table in tables.items()}
    queries = {}
    # However fast the machine is, a batch counts for more than those before it.
    for name, adapt in {"adaptive": Policy(half_life=0.1), "static": False}.items():
        session = Session(spark, adapt=adapt)
        for stream, dataframe in streams.items():
            session.stream(stream, dataframe)
        queries[name] = session.sql(FLIP)
    adaptive, static = queries["adaptive"], queries["static"]
    garbage = [
        *("no JSON", "[1]", "\x00\x01"),
        *('{"plan": {"x": ["y"]}}', '{"plan": {"a": ["b"]}}', '{"plan": 7}', '{"plan": null}'),
    ]
    (static._control.directory / "garbage.json").write_text("\n".join(garbage))
    running = [start(query, tmp_path, name) for name, query in queries.items()]
    for started in running:
        started.processAllAvailable()
    expected = oracle(FLIP, tables)
    total = {"rows_in": sum(table.num_rows for table in tables.values()), "rows_out": expected.num_rows}
    reports = {name: reported(query, total) for name, query in queries.items()}
    for started in running:
        started.stop()
    for name in queries:
        assert_same_rows(result_of(tmp_path, name), expected)

    change = adaptive.history()[-1]
    assert change.batch >= BATCHES // 2
    assert written(change.after)["a"] == ["c", "b"]
    assert change.predicted is not None
    assert change.predicted > 0.2
    assert "another order saves" in change.reason
    assert reports["adaptive"]["rejected_messages"] == 0
    assert adaptive.snapshot().keys["a.k"].distinct == pytest.approx(40, rel=0.2)

    assert static.history() == ()
    assert written(reports["static"]["plan"]) == IN_TEXT_ORDER
    assert reports["static"]["rejected_messages"] == len(garbage)


def test_wrong_plans_are_refused(session: Session, feed: Feed) -> None:
    declare(session, feed, "abc")
    query = session.sql(THREE)
    with pytest.raises(PlanError, match="the plan has a head 'x', which is not a stream of the query"):
        query.replan({"x": ["b"]})
    with pytest.raises(PlanError, match="must probe each of b, c once"):
        query.pin({"a": ["b"], "b": ["a", "c"], "c": ["b", "a"]})
    assert query.history() == ()
    assert list(query._control.directory.iterdir()) == []
    shutil.rmtree(query._control.directory)
    query.replan(REVERSED)
    query.pin((("a", "c"), "b"))
    query.pin()
    assert [(change.reason, change.batch) for change in query.history()] == [("replan", -1), ("pin", -1)]
    assert query.history()[-1].after == (("a", "c"), "b")


def test_a_change_of_plan_survives_a_crash(spark: Any, feed: Feed, tmp_path: Path) -> None:
    """A crash before the batch that brought it was committed: the batch runs again, without the message's file."""
    session = Session(spark, adapt=False)
    tables = declare(session, feed, "abc", rows=60)
    query = session.sql(THREE)
    started = start(query, tmp_path, "result")
    started.processAllAvailable()
    query.pin(REVERSED)
    started.processAllAvailable()
    started.stop()
    with pytest.raises(PlanError, match="the query runs this plan already"):
        query.replan(REVERSED)
    commits = tmp_path / "result-checkpoint" / "commits"
    last = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
    for log in (commits, tmp_path / "result" / "_spark_metadata"):
        (log / str(last)).unlink()
        (log / f".{last}.crc").unlink(missing_ok=True)
    shutil.rmtree(query._control.directory)
    more = {name: _later(rows_of(seed, 20)) for seed, name in enumerate("abc", 7)}
    for name, table in more.items():
        path = tmp_path / "streams" / name / "99999.parquet"
        tables[name] = pa.concat_tables([tables[name], table])
        pq.write_table(table, path)
        os.utime(path, (1_000_009_999,) * 2)

    resumed = once_more(session)
    started = start(resumed, tmp_path, "result")
    started.processAllAvailable()
    progress = reported(resumed, {"rows_in": 60, "rows_out": oracle(THREE, more).num_rows})
    started.stop()
    assert_same_rows(result_of(tmp_path, "result"), oracle(THREE, tables))
    assert written(progress["plan"]) == REVERSED
    assert [change.reason for change in resumed.history()] == ["as the checkpoint has it"]

    pinned = once_more(session)
    pinned.pin(IN_TEXT_ORDER)
    started = start(pinned, tmp_path, "result")
    started.processAllAvailable()
    progress = reported(pinned, {"rows_in": 0, "rows_out": 0})
    started.stop()
    assert written(progress["plan"]) == IN_TEXT_ORDER == written(pinned.plan.written)


def once_more(session: Session) -> SparkQuery:
    """The same query by another session on the same streams."""
    again = Session(session.spark, adapt=False)
    for name in "abc":
        again.stream(name, session._dataframes[name], lateness="1 second")
    return again.sql(THREE)


def test_only_the_newest_run_of_a_query_is_followed(caplog: pytest.LogCaptureFixture) -> None:
    listener = Listener()
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


def test_what_a_query_has_cached_stays_until_its_last_run_ends(tmp_path: Path) -> None:
    listener = Listener()
    listener.directories.add(tmp_path)
    listener._running = {"first": {"query"}, "second": {"query"}}
    cache = tmp_path / "query" / CACHE
    cache.mkdir(parents=True)
    listener.onQueryTerminated(_ended("first"))
    assert cache.exists()
    listener.onQueryTerminated(_ended("second"))
    assert not cache.exists()


def _ended(run: str) -> Any:
    """An event of Spark's."""
    return SimpleNamespace(runId=lambda: SimpleNamespace(toString=lambda: run))


def test_a_query_that_nobody_holds_is_there_when_it_is_started_again(session: Session, feed: Feed) -> None:
    declare(session, feed, "abc")
    name, listener = session.sql(THREE).name, session._listener
    listener._running["first"] = {name}
    listener.onQueryTerminated(_ended("first"))
    gc.collect()
    assert listener._query(name) is not None


def test_every_run_of_a_query_hears_for_itself_who_is_silent(session: Session, feed: Feed) -> None:
    declare(session, feed, "abc")
    query = session.sql(THREE, idle_timeout="2 seconds")
    for second in range(4):
        for run in ("first", "second"):
            # The other one is a step behind, and would take turns with this one for one that never is silent.
            heard = {"a": True, "b": True, "c": run == "second" and second < 2}
            progress = {alias: StreamProgress(spoke, second) for alias, spoke in heard.items()}
            report = ShardReport({}, Observation({}), (), progress, 0, 0, 0, StateSize(), "new", Seconds())
            query.pass_idle(run, report.to_json(), run, second)
    told = {path.name: json.loads(path.read_text())["reached"] for path in query._control.directory.iterdir()}
    lateness = 1_000_000
    assert told == {"reached-first.json": {"c": 3 + lateness}, "reached-second.json": {"c": 3 + lateness}}


def _later(table: pa.Table) -> pa.Table:
    """The same rows two minutes after all others."""
    times = pa.array(table["ts"].cast(pa.int64()).to_numpy() + 120_000_000, table.schema.field("ts").type)
    return table.set_column(0, table.schema.field("ts"), times)
