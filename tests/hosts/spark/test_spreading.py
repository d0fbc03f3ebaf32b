"""Heavy keys on Spark: they are spread while the query runs, over a restart, and every result is there once."""

import time
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from braid.hosts.spark.driver.rescaling import rescale
from braid.hosts.spark.driver.session import Session
from braid.testing import assert_same_rows, oracle
from tests.hosts.conftest import Feed, run_out, without_time

TEXT = "SELECT a.n AS an, b.n AS bn FROM a [RANGE 2 SECONDS], b [RANGE 3 SECONDS] WHERE a.k = b.k"
GROUPED = (
    TEXT.replace("a.n AS an, b.n AS bn", "a.k, count(*) AS pairs") + " GROUP BY a.k, WINDOW(event_time, '5 seconds')"
)
BATCHES = 30
ROWS = 40


def skewed(seed: int) -> pa.Table:
    """A second of event time for each micro-batch; two rows of three have the key 0."""
    generator = np.random.default_rng(seed)
    count = BATCHES * ROWS
    times = np.sort(generator.integers(1_000_000, (BATCHES + 1) * 1_000_000, count))
    keys = np.where(generator.random(count) < 0.67, 0, generator.integers(1, 50, count))
    return pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC")), "k": keys, "n": np.arange(count)})


@pytest.mark.parametrize(("text", "rescaled"), [(TEXT, False), (GROUPED, True)], ids=["restarted", "rescaled group"])
def test_a_heavy_key_is_spread_while_the_query_runs(
    session: Session, feed: Feed, tmp_path: Path, text: str, rescaled: bool
) -> None:
    """The query is stopped when a key is spread, and goes on from its checkpoint, perhaps with other shards."""
    tables = {name: skewed(seed) for seed, name in enumerate("ab")}
    frames = {name: feed(name, table, ROWS) for name, table in tables.items()}
    for name, frame in frames.items():
        session.stream(name, frame, lateness="1 second")
    query = session.sql(text, shards=4)
    writer = query.dataframe.writeStream.format("parquet").option("path", str(tmp_path / "result"))
    running = writer.option("checkpointLocation", str(tmp_path / "result-checkpoint")).start()
    while "are spread" not in query.explain():
        assert running.isActive, running.exception()
        assert (query.progress() or {"batch": 0})["batch"] < BATCHES, query.explain()
        time.sleep(0.05)
    running.stop()
    assert "heavy key 0 of dimension 0, over" in query.explain()
    assert "the largest of 4 shards had" in query.explain()
    again = Session(session.spark)
    for name, frame in frames.items():
        again.stream(name, frame, lateness="1 second")
    shards = 3 if rescaled else 4
    if rescaled:
        rescale(session.spark, str(tmp_path / "result-checkpoint"), shards)
    restarted = again.sql(text, shards=shards)
    result = run_out(restarted.dataframe, tmp_path)
    expected = oracle(text, tables)
    if text == TEXT:
        assert_same_rows(without_time(result), expected)
    else:  # The last groups wait for a watermark.
        groups, all_groups = (
            Counter((row["k"], row["pairs"]) for row in table.to_pylist()) for table in (result, expected)
        )
        assert groups <= all_groups and groups.total() > expected.num_rows // 2
    progress = restarted.progress()
    assert progress is not None
    assert set(progress["evenness"]) == {"rows", "work"}
    if not rescaled:
        assert "heavy key 0" in restarted.explain()
