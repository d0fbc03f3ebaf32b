"""A program that is killed while a heavy key is spread, or about to be: every result has been written exactly once."""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from braid.testing import assert_same_rows, oracle
from braid.testing.stream_files import write_stream
from tests.hosts.conftest import without_time, written
from tests.hosts.spark.conftest import kill, log_of

TEXT = "SELECT a.n AS an, b.n AS bn FROM a [RANGE 2 SECONDS], b [RANGE 3 SECONDS] WHERE a.k = b.k"
PROGRAM = Path(__file__).with_name("spread_query.py")
PHASES = {
    "begin": "rows are copied (copied)",
    "spread": "are spread",
    "end": "rows are copied (gathered)",
}
"""What `explain()` says of a key at the moments at which the program is killed."""

BATCHES, HEAVY, ROWS = 34, 15, 40
"""Micro-batches, those in which one key is heavy, and rows of each stream in each of them."""


def skewed(seed: int) -> pa.Table:
    """A second of event time for each micro-batch. At first, two rows of three have the key 0; later, none."""
    choose, count = np.random.default_rng(seed), BATCHES * ROWS
    times = np.sort(choose.integers(1_000_000, (BATCHES + 1) * 1_000_000, count))
    keys = np.where(choose.random(count) < 0.67, 0, choose.integers(1, 50, count))
    late = np.arange(count) >= HEAVY * ROWS
    keys[late] = choose.integers(1, 200, late.sum())
    return pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC")), "k": keys, "n": np.arange(count)})


def start(directory: Path) -> "subprocess.Popen[bytes]":
    (directory / "phases").write_text("")
    return subprocess.Popen(
        [sys.executable, str(PROGRAM), str(directory), TEXT],
        stdout=subprocess.DEVNULL,
        stderr=(directory / "stderr").open("wb"),
        start_new_session=True,
    )


def wait_for(process: "subprocess.Popen[bytes]", directory: Path, phase: str) -> None:
    """Wait until the program says that a key is in a phase, and then until the next batch has begun."""
    while PHASES[phase] not in (directory / "phases").read_text():
        assert process.poll() is None, f"{phase}: {(directory / 'phases').read_text()}{log_of(directory)}"
        time.sleep(0.01)
    begun = newest(directory / "checkpoint" / "offsets")
    while newest(directory / "checkpoint" / "offsets") == begun and process.poll() is None:
        time.sleep(0.01)


def newest(log: Path) -> int:
    """The newest batch in a log of a checkpoint."""
    return max((int(entry.name) for entry in log.glob("[0-9]*")), default=-1)


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(3))
def test_a_program_that_is_killed_while_a_key_is_spread(seed: int, tmp_path: Path) -> None:
    """It is killed in the middle of a batch when copying begins, when rows are spread, and when they no longer are."""
    tables = {name: skewed(10 * seed + number) for number, name in enumerate("ab")}
    for name, table in tables.items():
        write_stream(tmp_path / "streams" / name, table, ROWS)
    (tmp_path / "cache").mkdir()
    killed_within = []
    for phase in PHASES:
        process = start(tmp_path)
        try:
            wait_for(process, tmp_path, phase)
            time.sleep(0.1 + 0.1 * seed)
        finally:
            kill(process)
        killed_within.append(newest(tmp_path / "checkpoint" / "offsets") > newest(tmp_path / "checkpoint" / "commits"))
    last = start(tmp_path)
    assert last.wait() == 0, log_of(tmp_path)
    assert any(killed_within), "no batch was cut off"
    assert "heavy key 0" not in (tmp_path / "phases").read_text().splitlines()[-1]
    assert_same_rows(without_time(written(tmp_path / "result")), oracle(TEXT, tables))
