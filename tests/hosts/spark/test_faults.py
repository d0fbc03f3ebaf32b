"""Whole programs that die: what they had written, and what their successors write, is the result once."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from braid.testing import assert_same_rows, oracle
from tests.hosts.spark.driver import TEXT
from tests.hosts.spark.test_session import rows_of

DRIVER = Path(__file__).with_name("driver.py")


def write_streams(directory: Path, rows: int, each: int) -> dict[str, object]:
    tables = {name: rows_of(seed, rows) for seed, name in enumerate("abc")}
    for name, table in tables.items():
        (directory / name).mkdir(parents=True)
        for number, first in enumerate(range(0, rows, each)):
            path = directory / name / f"{number:05d}.parquet"
            pq.write_table(table.slice(first, each), path)
            os.utime(path, (1_000_000_000 + number,) * 2)
    return tables


def start(tmp_path: Path) -> "subprocess.Popen[bytes]":
    arguments = [str(tmp_path / part) for part in ("streams", "result", "checkpoint")]
    return subprocess.Popen(
        [sys.executable, str(DRIVER), *arguments],
        stdout=subprocess.DEVNULL,
        stderr=(tmp_path / "stderr").open("wb"),
        start_new_session=True,
    )


def kill_in_batch(process: "subprocess.Popen[bytes]", tmp_path: Path, batch: int) -> None:
    """Kill the program and its workers soon after a batch has begun."""
    while not (tmp_path / "checkpoint" / "offsets" / str(batch)).exists():
        assert process.poll() is None, (tmp_path / "stderr").read_text()[-2_000:]
        time.sleep(0.01)
    time.sleep(0.2)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.parametrize("batches", [(2,), pytest.param((0, 1, 3), marks=pytest.mark.sweep)], ids=str)
def test_a_killed_program_goes_on_where_it_was(batches: tuple[int, ...], tmp_path: Path) -> None:
    tables = write_streams(tmp_path / "streams", rows=80, each=20)
    for batch in batches:
        kill_in_batch(start(tmp_path), tmp_path, batch)
    last = start(tmp_path)
    assert last.wait() == 0, (tmp_path / "stderr").read_text()[-2_000:]
    result = pq.ParquetDataset(tmp_path / "result").read().drop_columns(["event_time"])
    assert_same_rows(result, oracle(TEXT, tables))
