"""Checkpoints that go on with another number of shards and partitions: every result is there exactly once."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from braid.errors import BraidError, FileError
from braid.hosts.spark.driver.rescaling import rescale
from braid.hosts.spark.driver.session import Session
from braid.testing import assert_same_rows, oracle
from braid.testing.stream_files import THREE_WAY_JOIN
from tests.hosts.conftest import Feed, Streams, without_time, written

GROUPED = """SELECT a.k, count(*) AS pairs FROM a [RANGE 20 SECONDS], b [RANGE 20 SECONDS] WHERE a.k = b.k
             GROUP BY a.k, WINDOW(event_time, '10 seconds')"""
OUTER = """SELECT a.n AS an, b.n AS bn FROM a [RANGE 20 SECONDS] LEFT JOIN b [RANGE 20 SECONDS] ON a.k = b.k
           WHERE NOT EXISTS (SELECT * FROM c [RANGE 3 SECONDS] WHERE c.k = a.k)"""


@pytest.fixture
def partitions(spark: Any) -> Iterator[Any]:
    """Sets the number of partitions, until the test ends."""
    yield lambda count: spark.conf.set("spark.sql.shuffle.partitions", count)
    spark.conf.set("spark.sql.shuffle.partitions", 2)


def files_in(directory: Path) -> dict[str, bytes]:
    paths = (path for path in sorted(directory.rglob("*")) if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in paths}


def run(
    session: Session,
    streams: Streams,
    text: str,
    shards: int,
    tmp_path: Path,
    checkpoint: str = "checkpoint",
    out: str = "result",
) -> pa.Table:
    """All results so far: those of earlier runs, and of a run on this checkpoint until the streams are exhausted."""
    again = Session(session.spark)
    for name, frame in streams.frames.items():
        again.stream(name, frame, lateness="1 second")
    writer = again.sql(text, shards=shards).dataframe.writeStream.option("path", str(tmp_path / out))
    writer = writer.option("checkpointLocation", str(tmp_path / checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination()
    return without_time(written(tmp_path / out))


@pytest.mark.parametrize(
    ("text", "shards", "count"),
    [(THREE_WAY_JOIN, 3, 3), (OUTER, 5, 2), (GROUPED, 3, 2)],
    ids=["join", "outer", "group"],
)
def test_a_rescaled_query_goes_on_with_each_result_once(
    session: Session, feed: Feed, tmp_path: Path, partitions: Any, text: str, shards: int, count: int
) -> None:
    """In place, to more shards and perhaps partitions; then to another directory, to a single shard."""
    streams = Streams(feed, tmp_path / "streams")
    run(session, streams, text, 2, tmp_path)
    checkpoint = tmp_path / "checkpoint"
    before = files_in(checkpoint)
    told: list[str] = []
    rescale(session.spark, str(checkpoint), shards, partitions=count, say=told.append)
    (backup,) = tmp_path.glob("checkpoint.before-*")
    assert files_in(backup) == before
    assert any(f"of 2 shards among {shards} shards" in line for line in told)
    streams.more()
    partitions(count)
    run(session, streams, text, shards, tmp_path)
    before = files_in(checkpoint)
    rescale(session.spark, str(checkpoint), 1, target=str(tmp_path / "moved"))
    assert files_in(checkpoint) == before
    assert {path.name for path in tmp_path.iterdir()} == {"streams", "result", "checkpoint", backup.name, "moved"}
    streams.more()
    result = run(session, streams, text, 1, tmp_path, "moved")
    expected = oracle(text, streams.rows)
    assert expected.num_rows > 20
    if text == THREE_WAY_JOIN:
        assert_same_rows(result, expected)
    else:  # The last results wait for a watermark.
        assert rows_of(result) <= rows_of(expected)
        assert rows_of(result).total() > expected.num_rows // 2


def rows_of(table: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in table.to_pylist())


def test_what_cannot_be_rescaled_stays_as_it_is(session: Session, feed: Feed, tmp_path: Path) -> None:
    streams = Streams(feed, tmp_path / "streams")
    checkpoint = tmp_path / "checkpoint"
    writer = session.spark.readStream.format("rate").load().writeStream.format("noop")
    writer.option("checkpointLocation", str(tmp_path / "foreign")).trigger(availableNow=True).start().awaitTermination()
    run(session, streams, THREE_WAY_JOIN, 2, tmp_path)
    before = files_in(tmp_path)

    def refused(message: str, path: Path = checkpoint, shards: int = 4, **options: Any) -> None:
        with pytest.raises(BraidError, match=message) as refusal:
            rescale(session.spark, str(path), shards, **options)
        assert "\tat " not in str(refusal.value)
        assert files_in(tmp_path) == before

    refused("has committed no batch", tmp_path / "nothing")
    refused("not Braid's", tmp_path / "foreign")
    refused("has 2 shards and 2 partitions already", shards=2)
    refused("exists already", target=str(tmp_path / "foreign"))
    refused("reads no stream 'z'", rates={"z": 2.0})
    run(session, streams, GROUPED, 2, tmp_path, "grouped", "groups")
    before = files_in(tmp_path)
    refused("stays in 2 partitions", tmp_path / "grouped", partitions=3)
    offsets = max((checkpoint / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    written_before = offsets.read_text()
    (offsets.parent / f".{offsets.name}.crc").unlink()
    offsets.write_text(written_before.replace('"format": 8', '"format": 99'))
    before = files_in(tmp_path)
    refused("was written by a newer version of Braid: it has format 99")
    for half_written in (written_before[:-40], written_before[: written_before.index("{")], ""):
        offsets.write_text(half_written)
        before = files_in(tmp_path)
        refused(f"is damaged: offsets/{offsets.name} is half written; use a copy of the checkpoint")
    offsets.write_text(written_before)
    before = files_in(tmp_path)
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        owned = written_before.replace(f"-{os.getpid()}-", f"-{process.pid}-")
        assert owned != written_before
        offsets.write_text(owned)
        before = files_in(tmp_path)
        refused(f"in process {process.pid}; end that program")
        offsets.write_text(written_before)
    finally:
        process.communicate(b"\n")
    for state in (checkpoint / "state" / "0" / "0").glob("[0-9]*"):
        state.unlink()
    before = files_in(tmp_path)
    refused("cannot be rescaled")


def test_a_checkpoint_that_a_query_runs_on_is_refused(session: Session, feed: Feed, tmp_path: Path) -> None:
    streams = Streams(feed, tmp_path / "streams")
    run(session, streams, THREE_WAY_JOIN, 2, tmp_path)
    for name, frame in streams.frames.items():
        session.stream(name, frame, lateness="1 second")
    writer = session.sql(THREE_WAY_JOIN, shards=2).dataframe.writeStream.option("path", str(tmp_path / "result"))
    running = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        with pytest.raises(FileError, match="a query runs on"):
            rescale(session.spark, str(tmp_path / "checkpoint"), 3)
    finally:
        running.stop()
