"""Damaged caches and segments on Spark, and checkpoints that belong to another query."""

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from braid.hosts.spark.driver import pipeline
from braid.hosts.spark.driver.cluster import shard_labels
from braid.hosts.spark.driver.session import Session
from braid.hosts.spark.shared.cache_space import CACHE
from braid.testing import assert_same_rows, oracle
from braid.testing.stream_files import random_rows
from tests.hosts.conftest import Feed, run_out, without_time, written

TWO = "SELECT a.n AS an, b.n AS bn FROM a [RANGE 20 SECONDS], b [RANGE 20 SECONDS] WHERE a.k = b.k"


def cache_files(directory: Path) -> list[Path]:
    return [path for path in directory.glob(f"*/{CACHE}/*/*") if path.is_file()]


def damage(directory: Path, turn: int) -> None:
    """Damage the cache: garbage of the same size, garbage of another size, additional files, and all files removed."""
    for path in cache_files(directory):
        if turn == 0:
            path.write_bytes(os.urandom(path.stat().st_size))
        elif turn == 1:
            path.write_bytes(b"garbage")
        elif turn == 2:
            (path.parent / f"additional {path.name}").write_bytes(b"garbage")
        else:
            path.unlink()


def test_a_damaged_cache_does_not_change_the_result(session: Session, spark: Any, tmp_path: Path) -> None:
    tables = {name: random_rows(seed) for seed, name in enumerate("ab")}
    for name, table in tables.items():
        (tmp_path / name).mkdir()
        pq.write_table(table.slice(0, 24), tmp_path / name / "0.parquet")
        stream = spark.readStream.schema(spark.read.parquet(str(tmp_path / name)).schema)
        session.stream(name, stream.parquet(str(tmp_path / name)), lateness="1 second")
    writer = session.sql(TWO).dataframe.writeStream.format("parquet").option("path", str(tmp_path / "result"))
    started = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    for turn in range(5):
        if turn:
            for name, table in tables.items():
                pq.write_table(table.slice(24 * turn, 24), tmp_path / name / f"{turn}.parquet")
        started.processAllAvailable()
        assert cache_files(session._directory)
        damage(session._directory, turn)
    started.stop()
    assert_same_rows(without_time(written(tmp_path / "result")), oracle(TWO, tables))


def test_a_damaged_segment_ends_the_query(
    session: Session, feed: Feed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here the last byte of every packed segment is changed on the way to the operator."""
    pack = pipeline._packed

    def damaged(*arguments: Any) -> DataFrame:
        flipped = F.expr("cast(concat(substring(payload, 1, length(payload) - 1), X'5A') as binary)")
        return pack(*arguments).withColumn("payload", flipped)

    monkeypatch.setattr(pipeline, "_packed", damaged)
    for seed, name in enumerate("ab"):
        session.stream(name, feed(name, random_rows(seed), 40))
    with pytest.raises(StreamingQueryException, match="is damaged: its checksum does not match its content"):
        run_out(session.sql(TWO).dataframe, tmp_path)


def test_another_query_on_the_same_checkpoint_is_refused(
    session: Session, feed: Feed, spark: Any, tmp_path: Path
) -> None:
    streams = {name: feed(name, random_rows(seed), 40) for seed, name in enumerate("ab")}
    for name, stream in streams.items():
        session.stream(name, stream)
    run_out(session.sql(TWO, shards=2).dataframe, tmp_path)
    with pytest.raises(StreamingQueryException, match=r"it was for\nSELECT"):  # There is no new input.
        run_out(session.sql(TWO.replace("20 SECONDS", "10 SECONDS"), shards=2).dataframe, tmp_path)
    more = random_rows(7, 5)
    for name in "ab":
        pq.write_table(more, tmp_path / "streams" / name / "more.parquet")
    with pytest.raises(StreamingQueryException, match=r"it was for\nSELECT"):
        run_out(session.sql(TWO.replace("20 SECONDS", "10 SECONDS"), shards=2).dataframe, tmp_path)
    with pytest.raises(
        StreamingQueryException, match=r"it was for\n2 shards: .* is 2\)\nand this is\n3 shards: .* is 2\)"
    ):
        run_out(session.sql(TWO, shards=3).dataframe, tmp_path)
    session.stream("a", streams["a"].withColumn("k", F.col("k").cast("int")))
    with pytest.raises(StreamingQueryException, match=r"it was for\na \(.*k: int64.*\n.*\nand this is\na \(.*k: int32"):
        run_out(session.sql(TWO, shards=2).dataframe, tmp_path)
    session.stream("a", streams["a"])
    result = run_out(session.sql(TWO, shards=2).dataframe, tmp_path)
    assert isinstance(result, pa.Table)
    assert result.num_rows


def test_a_changed_query_goes_on_from_the_checkpoint(session: Session, feed: Feed, tmp_path: Path) -> None:
    """With other columns and one more condition; there is no way back, because rows were left out meanwhile."""
    early = {name: random_rows(seed) for seed, name in enumerate("ab")}
    for name, rows in early.items():
        session.stream(name, feed(name, rows, 40), lateness="1 hour")
    run_out(session.sql(TWO, shards=2).dataframe, tmp_path)
    changed = f"{TWO.replace('b.n AS bn', 'a.k AS k')} AND a.n % 2 = 0"
    more = random_rows(7, 5)
    for name in "ab":
        pq.write_table(more, tmp_path / "streams" / name / "more.parquet")
    whole = without_time(run_out(session.sql(changed, shards=2).dataframe, tmp_path / "again"))
    for path in ("result", "result-checkpoint"):
        assert (tmp_path / path).exists()
    (tmp_path / "result").rename(tmp_path / "first result")
    after = without_time(run_out(session.sql(changed, shards=2).dataframe, tmp_path))
    combined = {name: pa.concat_tables([rows, more]) for name, rows in early.items()}
    assert_same_rows(whole, oracle(changed, combined))
    expected = oracle(changed, combined).num_rows - oracle(changed, early).num_rows
    assert after.num_rows == expected > 0
    with pytest.raises(StreamingQueryException, match="a condition of the first one is missing"):
        run_out(session.sql(TWO, shards=2).dataframe, tmp_path)


def test_labels_of_shards_depend_on_the_number_of_partitions() -> None:
    """Except the first: so at least one shard finds its store again, and notices that the number has changed."""
    labels = [shard_labels(2, partitions) for partitions in (2, 7, 200)]
    assert len(set(labels)) > 1
    assert {first for first, _ in labels} == {0}
