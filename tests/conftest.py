"""A Spark session that tests share, sweeps over many seeds, and the settings for all tests."""

import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from braid.hosts.spark.driver.local_spark import local_spark

# Tests start many a JVM for a few rows each: the quick compiler and the simple collector take half the processor time.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell makes background jobs ignore Ctrl-C, and child processes inherit that, but tests stop them by Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)

GENTLE = 5
"""The nice value of processes without the shared Spark, if tests run in several processes."""

Sweep = Callable[[Sequence[int], Callable[[int], object]], None]
"""The fixture `sweep`: `sweep(seeds, check)`."""


@pytest.fixture
def sweep(capsys: pytest.CaptureFixture[str]) -> Sweep:
    """Runs a check for many seeds, prints its progress, and fails with the first failures."""

    def run(seeds: Sequence[int], check: Callable[[int], object]) -> None:
        failures: list[str] = []
        for count, seed in enumerate(seeds, 1):
            try:
                check(seed)
            except Exception as problem:
                failures.append(f"seed {seed}: {type(problem).__name__}: {problem}")
            if count % 500 == 0:
                with capsys.disabled():
                    print(f"{count} of {len(seeds)} cases, {len(failures)} failed", file=sys.stderr, flush=True)
        assert not failures, f"{len(failures)} cases failed, the first:\n" + "\n\n".join(failures[:5])

    return run


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run all tests with the fixture `spark` in one process, so that they share one warm Spark."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave the cores to the process with the shared Spark: its tests take longest."""
    if os.environ.get("PYTEST_XDIST_WORKER") and "spark" not in getattr(item, "fixturenames", ()):
        os.nice(max(0, GENTLE - os.nice(0)))


def pytest_collection_finish() -> None:
    """Collect garbage less often: a tenth of the processor time went into looking through all modules and tests."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    session = local_spark(2)
    session.sparkContext.setLogLevel("ERROR")
    session.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    yield session
    session.stop()
