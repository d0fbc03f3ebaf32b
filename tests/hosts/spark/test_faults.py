"""Killed programs and executors: after a restart, every result has been written exactly once."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

from braid.testing import assert_same_rows, oracle
from braid.testing.stream_files import OUTER_JOINS, SEMI_JOINS, THREE_WAY_JOIN, write_streams
from tests.hosts.conftest import without_time, written
from tests.hosts.spark.conftest import kill, log_of

DRIVER = Path(__file__).with_name("killed_query.py")
LOCAL = "local[2]"
CLUSTER = "local-cluster[2,1,1024]"
EXECUTOR = "CoarseGrainedExecutorBackend"
"""The main class of Spark's executors, which is in their command line."""


def start(directory: Path, master: str = LOCAL, text: str = THREE_WAY_JOIN) -> "subprocess.Popen[bytes]":
    (directory / "cache").mkdir(exist_ok=True)
    return subprocess.Popen(
        [sys.executable, str(DRIVER), str(directory), master, text],
        stdout=subprocess.DEVNULL,
        stderr=(directory / "stderr").open("wb"),
        start_new_session=True,
    )


def wait_for_batch(process: "subprocess.Popen[bytes]", directory: Path, batch: int) -> None:
    """Wait until a batch has just begun."""
    while not (directory / "checkpoint" / "offsets" / str(batch)).exists():
        assert process.poll() is None, log_of(directory)
        time.sleep(0.01)
    time.sleep(0.2)


def executors_of(process: "subprocess.Popen[bytes]") -> list[int]:
    """The ids of the processes that run tasks, in the process session of the program."""
    executors = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if os.getsid(int(path.name)) == process.pid and EXECUTOR in (path / "cmdline").read_text():
                executors.append(int(path.name))
        except OSError:
            continue
    return executors


def assert_result_is_right(directory: Path, tables: dict[str, pa.Table], text: str = THREE_WAY_JOIN) -> None:
    assert_same_rows(without_time(written(directory / "result")), oracle(text, tables))


@pytest.mark.parametrize(
    ("batches", "keep_cache", "text"),
    [
        ((1,), True, THREE_WAY_JOIN),
        pytest.param((0, 2), True, THREE_WAY_JOIN, marks=pytest.mark.sweep),
        pytest.param((0, 1, 3), False, THREE_WAY_JOIN, marks=pytest.mark.sweep),
        pytest.param((0, 1, 3), False, OUTER_JOINS, marks=pytest.mark.sweep),
        pytest.param((0, 1, 3), False, SEMI_JOINS, marks=pytest.mark.sweep),
    ],
    ids=["once", "warm", "cold", "outer joins", "semi joins"],
)
def test_a_killed_program_goes_on_where_it_was(
    batches: tuple[int, ...], keep_cache: bool, text: str, tmp_path: Path
) -> None:
    """The first batch has a control message, whose file is gone after the restart."""
    tables = write_streams(tmp_path / "streams", rows=80, rows_per_file=20, last_row=text in (OUTER_JOINS, SEMI_JOINS))
    for batch in batches:
        process = start(tmp_path, text=text)
        wait_for_batch(process, tmp_path, batch)
        kill(process)
        if not keep_cache:
            shutil.rmtree(tmp_path / "cache")
    last = start(tmp_path, text=text)
    assert last.wait() == 0, log_of(tmp_path)
    assert_result_is_right(tmp_path, tables, text)
    assert not list((tmp_path / "cache").iterdir())


@pytest.mark.sweep
@pytest.mark.parametrize("batches", [(1,), (0, 1, 2, 3)], ids=str)
def test_a_killed_executor_is_replaced(batches: tuple[int, ...], tmp_path: Path) -> None:
    tables = write_streams(tmp_path / "streams", rows=80, rows_per_file=20)
    process = start(tmp_path, CLUSTER)
    try:
        for batch in batches:
            wait_for_batch(process, tmp_path, batch)
            executors = executors_of(process)
            assert executors
            os.kill(executors[0], signal.SIGKILL)
        assert process.wait() == 0, log_of(tmp_path)
    finally:
        if process.poll() is None:
            kill(process)
    assert_result_is_right(tmp_path, tables)
