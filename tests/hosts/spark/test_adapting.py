"""Plan changes on Spark: by adaptation, on request, and again after a crash; results never change."""

import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from braid.adapt.controller import Policy
from braid.errors import PlanError
from braid.hosts.spark.driver.query import SparkQuery
from braid.hosts.spark.driver.session import Session
from braid.testing import assert_same_rows, oracle
from braid.testing.flipping import FLIP, flipping
from braid.testing.stream_files import THREE_WAY_JOIN, random_rows
from tests.hosts.conftest import Feed, declare, reported, without_time

BATCHES = 14
IN_TEXT_ORDER = {"a": ["b", "c"], "b": ["a", "c"], "c": ["a", "b"]}
REVERSED = {"a": ["c", "b"], "b": ["c", "a"], "c": ["b", "a"]}


def start(query: SparkQuery, tmp_path: Path, name: str) -> Any:
    """Start a query that runs until it is stopped, so that it receives control messages on the way."""
    writer = query.dataframe.writeStream.format("parquet").option("path", str(tmp_path / name))
    return writer.option("checkpointLocation", str(tmp_path / f"{name}-checkpoint")).start()


def result_of(tmp_path: Path, name: str) -> pa.Table:
    return without_time(pq.ParquetDataset(tmp_path / name).read())


def probe_orders(plan: Any) -> dict[str, list[str]]:
    """A plan of probe sequences, with lists as JSON has them."""
    return {head: list(rest) for head, rest in plan.items()}


def test_the_plan_follows_selectivities_that_flip(spark: Any, feed: Feed, tmp_path: Path) -> None:
    """A second query over the same streams does not adapt, and gets garbage as control messages."""
    tables = flipping(BATCHES, 120)
    streams = {name: feed(name, table, 120) for name, table in tables.items()}
    queries = {}
    # The half-life is short, so that even on a fast machine a batch counts for more than the batches before it.
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
    assert probe_orders(change.after)["a"] == ["c", "b"]
    assert change.predicted is not None
    assert change.predicted > 0.2
    assert "another order saves" in change.reason
    assert reports["adaptive"]["rejected_messages"] == 0
    assert adaptive.snapshot().keys["a.k"].distinct == pytest.approx(40, rel=0.2)

    assert static.history() == ()
    assert probe_orders(reports["static"]["plan"]) == IN_TEXT_ORDER
    assert reports["static"]["rejected_messages"] == len(garbage)


def test_wrong_plans_are_refused(session: Session, feed: Feed) -> None:
    declare(session, feed, "abc")
    query = session.sql(THREE_WAY_JOIN)
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


def test_a_plan_change_survives_a_crash(spark: Any, feed: Feed, tmp_path: Path) -> None:
    """The crash comes before the batch with the message is committed. The batch runs again, and the file is gone."""
    session = Session(spark, adapt=False)
    tables = declare(session, feed, "abc", rows=60)
    query = session.sql(THREE_WAY_JOIN)
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
    more = {name: two_minutes_later(random_rows(seed, 20)) for seed, name in enumerate("abc", 7)}
    for name, table in more.items():
        path = tmp_path / "streams" / name / "99999.parquet"
        tables[name] = pa.concat_tables([tables[name], table])
        pq.write_table(table, path)
        os.utime(path, (1_000_009_999,) * 2)

    resumed = same_query(session)
    started = start(resumed, tmp_path, "result")
    started.processAllAvailable()
    progress = reported(resumed, {"rows_in": 60, "rows_out": oracle(THREE_WAY_JOIN, more).num_rows})
    started.stop()
    assert_same_rows(result_of(tmp_path, "result"), oracle(THREE_WAY_JOIN, tables))
    assert probe_orders(progress["plan"]) == REVERSED
    assert [(change.reason, change.verdict) for change in resumed.history()] == [
        ("as the checkpoint has it", "resumed")
    ]

    pinned = same_query(session)
    pinned.pin(IN_TEXT_ORDER)
    started = start(pinned, tmp_path, "result")
    started.processAllAvailable()
    progress = reported(pinned, {"rows_in": 0, "rows_out": 0})
    started.stop()
    assert probe_orders(progress["plan"]) == IN_TEXT_ORDER == probe_orders(pinned.plan.written)


def same_query(session: Session) -> SparkQuery:
    """The same query in another session over the same streams."""
    other = Session(session.spark, adapt=False)
    for name in "abc":
        other.stream(name, session._dataframes[name], lateness="1 second")
    return other.sql(THREE_WAY_JOIN)


def two_minutes_later(table: pa.Table) -> pa.Table:
    """The same rows two minutes after all others."""
    times = pa.array(table["ts"].cast(pa.int64()).to_numpy() + 120_000_000, table.schema.field("ts").type)
    return table.set_column(0, table.schema.field("ts"), times)
