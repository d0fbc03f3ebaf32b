"""A checkpoint that is removed stays away, although Spark writes to it for a while, until a query begins there."""

import time
from pathlib import Path

from braid.hosts.spark.driver.checkpoint_removal import begin_checkpoint, remove_checkpoint


def write_snapshot(checkpoint: Path) -> None:
    """What Spark's maintenance of state stores does."""
    (checkpoint / "state" / "0" / "0").mkdir(parents=True)
    (checkpoint / "state" / "0" / "0" / "58.zip").write_bytes(b"state")


def test_a_snapshot_that_is_written_later_is_removed_too(tmp_path: Path) -> None:
    checkpoint = tmp_path / "joined #1"
    write_snapshot(checkpoint)
    remove_checkpoint(checkpoint)
    assert not checkpoint.exists()
    write_snapshot(checkpoint)
    while checkpoint.exists():
        time.sleep(0.05)
    begin_checkpoint(checkpoint)  # Ends the looks at it.


def test_a_query_begins_without_what_an_earlier_one_has_left(tmp_path: Path) -> None:
    checkpoint = tmp_path / "joined #1"
    write_snapshot(checkpoint)
    begin_checkpoint(checkpoint)
    assert not checkpoint.exists()


def test_a_query_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    checkpoint = tmp_path / "joined #1"
    remove_checkpoint(checkpoint)
    begin_checkpoint(checkpoint)
    write_snapshot(checkpoint)
    (checkpoint / "metadata").write_text("{}")
    begin_checkpoint(checkpoint)
    time.sleep(1.0)
    assert (checkpoint / "state").exists()
