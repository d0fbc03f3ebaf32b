"""Outer joins on Spark: their state survives a restart without a cache, with a plan change under way."""

import time
from pathlib import Path

from braid.hosts.spark.driver.session import Session
from braid.testing import assert_same_rows, oracle
from braid.testing.stream_files import OUTER_JOINS, random_rows, with_last_row
from tests.hosts.conftest import Feed, run_out, without_time


def test_outer_joins_go_on_where_they_were_stopped(session: Session, feed: Feed, tmp_path: Path) -> None:
    tables = {name: with_last_row(random_rows(seed), key=-1 - seed) for seed, name in enumerate("abc")}
    frames = {name: feed(name, table, 30) for name, table in tables.items()}
    for name, frame in frames.items():
        session.stream(name, frame, lateness="1 second")
    query = session.sql(OUTER_JOINS, shards=2)
    writer = query.dataframe.writeStream.format("parquet").option("path", str(tmp_path / "result"))
    started = writer.option("checkpointLocation", str(tmp_path / "result-checkpoint")).start()
    query.replan({"a": ["c", "b"], "b": ["c", "a"], "c": ["b", "a"]})
    while not started.recentProgress:
        assert started.isActive, started.exception()
        time.sleep(0.05)
    started.stop()
    again = Session(session.spark)
    for name, frame in frames.items():
        again.stream(name, frame, lateness="1 second")
    second = again.sql(OUTER_JOINS, shards=2)
    second.replan((("b", "c"), "a"))
    result = without_time(run_out(second.dataframe, tmp_path))
    assert_same_rows(result, oracle(OUTER_JOINS, tables))
