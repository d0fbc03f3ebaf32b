"""This release goes on from the checkpoints of the releases before it, and rescales them."""

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from braid.hosts.spark.driver.rescaling import rescale
from braid.runtime.manifest import FORMAT, OLDEST_FORMAT
from braid.testing import assert_same_rows
from tests.hosts.conftest import without_time, written
from tests.hosts.spark.stored.conftest import ARCHIVES, QUERIES, archive, unpack

STORED = [
    (checkpoint_format, name)
    for checkpoint_format in range(OLDEST_FORMAT, FORMAT + 1)
    for name in QUERIES
    if archive(checkpoint_format, name).exists()
]


def test_every_query_is_stored() -> None:
    """Of format 7 there is only the join. From format 8 on, there is one of every kind."""
    assert {name for checkpoint_format, name in STORED if checkpoint_format == FORMAT} == set(QUERIES)
    assert (7, "join") in STORED
    assert len(STORED) == len(list(ARCHIVES.iterdir()))


@pytest.mark.parametrize(("checkpoint_format", "name"), STORED)
def test_a_stored_checkpoint_goes_on(spark: Any, tmp_path: Path, checkpoint_format: int, name: str) -> None:
    check(spark, tmp_path, checkpoint_format, name)


@pytest.mark.parametrize(
    ("checkpoint_format", "name"),
    [pytest.param(*stored, marks=[] if stored[1] in ("join", "grid") else pytest.mark.sweep) for stored in STORED],
)
def test_a_stored_checkpoint_goes_on_with_other_shards(
    spark: Any, tmp_path: Path, checkpoint_format: int, name: str
) -> None:
    check(spark, tmp_path, checkpoint_format, name, shards=3)


def check(spark: Any, root: Path, checkpoint_format: int, name: str, shards: int | None = None) -> None:
    """Go on from a stored checkpoint to the end of its streams, and compare all results with the oracle."""
    query = QUERIES[name]
    unpack(archive(checkpoint_format, name), root)
    assert f'"format": {checkpoint_format}' in (root / "checkpoint" / "offsets" / "0").read_text()
    if shards is not None:
        rescale(spark, str(root / "checkpoint"), shards)
    before = written(root / "result")
    query.write(root, query.stored)
    shown = query.run(spark, root, shards).explain()
    if query.spreads and shards is None:  # Among other shards, a key is spread again when it has become heavy there.
        assert "heavy key 0" in shown
    result = without_time(written(root / "result"))
    expected = query.expected()
    if query.whole:
        assert result.num_rows > before.num_rows
        assert_same_rows(result, expected)
    else:
        assert rows_of(result) <= rows_of(expected)
        assert result.num_rows > max(before.num_rows, expected.num_rows // 2)


def rows_of(table: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in table.to_pylist())
