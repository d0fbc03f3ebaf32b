"""This release goes on from the checkpoints of the releases before it, and rescales them."""

from pathlib import Path
from typing import Any

import pytest

from braid.hosts.spark.driver.rescaling import rescale
from braid.runtime.manifest import FORMAT, OLDEST_FORMAT
from braid.testing import assert_same_rows, oracle
from braid.testing.stream_files import THREE_WAY_JOIN
from tests.hosts.conftest import Streams, without_time, written
from tests.hosts.spark.conftest import ARCHIVES, feed_in, run_stored_query, unpack


@pytest.mark.parametrize("checkpoint_format", range(OLDEST_FORMAT, FORMAT + 1))
@pytest.mark.parametrize("shards", [2, 3])
def test_a_stored_checkpoint_goes_on(spark: Any, tmp_path: Path, checkpoint_format: int, shards: int) -> None:
    unpack(ARCHIVES / f"format-{checkpoint_format}.tar.gz", tmp_path)
    assert f'"format": {checkpoint_format}' in (tmp_path / "checkpoint" / "offsets" / "0").read_text()
    if shards != 2:
        rescale(spark, str(tmp_path / "checkpoint"), shards)
    streams = Streams(feed_in(spark, tmp_path), tmp_path / "streams")
    before = written(tmp_path / "result")
    assert before.num_rows
    streams.more()
    run_stored_query(spark, streams, tmp_path, shards)
    result = written(tmp_path / "result")
    assert result.num_rows > before.num_rows
    assert_same_rows(without_time(result), oracle(THREE_WAY_JOIN, streams.rows))
