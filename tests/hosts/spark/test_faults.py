"""Whole programs and parts of them that die: what was written before and what is written after is the result, once."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from braid.testing import assert_same_rows, oracle
from tests.hosts.spark.conftest import written
from tests.hosts.spark.driver.test_session import rows_of
from tests.hosts.spark.killed_query import TEXT

DRIVER = Path(__file__).with_name("killed_query.py")
LOCAL = "local[2]"
CLUSTER = "local-cluster[2,1,1024]"
EXECUTOR = "CoarseGrainedExecutorBackend"


def write_streams(directory: Path, rows: int, each: int) -> dict[str, object]:
    tables = {name: rows_of(seed, rows) for seed, name in enumerate("abc")}
    for name, table in tables.items():
        (directory / name).mkdir(parents=True)
        for number, first in enumerate(range(0, rows, each)):
            path = directory / name / f"{number:05d}.parquet"
            pq.write_table(table.slice(first, each), path)
            os.utime(path, (1_000_000_000 + number,) * 2)
    return tables


def start(directory: Path, master: str = LOCAL) -> "subprocess.Popen[bytes]":
    (directory / "cache").mkdir(exist_ok=True)
    return subprocess.Popen(
        [sys.executable, str(DRIVER), str(directory), master],
        stdout=subprocess.DEVNULL,
        stderr=(directory / "stderr").open("wb"),
        start_new_session=True,
    )


def wait_for_batch(process: "subprocess.Popen[bytes]", directory: Path, batch: int) -> None:
    """Until a batch has just begun."""
    while not (directory / "checkpoint" / "offsets" / str(batch)).exists():
        assert process.poll() is None, told(directory)
        time.sleep(0.01)
    time.sleep(0.2)


def told(directory: Path) -> str:
    return (directory / "stderr").read_text()[-3_000:]


def kill(process: "subprocess.Popen[bytes]") -> None:
    """The program and its workers."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def executors_of(process: "subprocess.Popen[bytes]") -> list[int]:
    """Those processes of the program's own session that run tasks."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if os.getsid(int(path.name)) == process.pid and EXECUTOR in (path / "cmdline").read_text():
                found.append(int(path.name))
        except OSError:
            continue
    return found


def assert_right(directory: Path, tables: dict[str, object]) -> None:
    result = written(directory / "result").drop_columns(["event_time"])
    assert_same_rows(result, oracle(TEXT, tables))


@pytest.mark.parametrize(
    ("batches", "keep_cache"),
    [
        ((1,), True),
        pytest.param((0, 2), True, marks=pytest.mark.sweep),
        pytest.param((0, 1, 3), False, marks=pytest.mark.sweep),
    ],
    ids=["once", "warm", "cold"],
)
def test_a_killed_program_goes_on_where_it_was(batches: tuple[int, ...], keep_cache: bool, tmp_path: Path) -> None:
    """The first batch has a message, whose file goes with the program."""
    tables = write_streams(tmp_path / "streams", rows=80, each=20)
    for batch in batches:
        process = start(tmp_path)
        wait_for_batch(process, tmp_path, batch)
        kill(process)
        if not keep_cache:
            shutil.rmtree(tmp_path / "cache")
    last = start(tmp_path)
    assert last.wait() == 0, told(tmp_path)
    assert_right(tmp_path, tables)
    assert not list((tmp_path / "cache").iterdir())


@pytest.mark.sweep
@pytest.mark.parametrize("batches", [(1,), (0, 1, 2, 3)], ids=str)
def test_a_killed_executor_is_replaced(batches: tuple[int, ...], tmp_path: Path) -> None:
    tables = write_streams(tmp_path / "streams", rows=80, each=20)
    process = start(tmp_path, CLUSTER)
    try:
        for batch in batches:
            wait_for_batch(process, tmp_path, batch)
            executors = executors_of(process)
            assert executors
            os.kill(executors[0], signal.SIGKILL)
        assert process.wait() == 0, told(tmp_path)
    finally:
        if process.poll() is None:
            kill(process)
    assert_right(tmp_path, tables)
