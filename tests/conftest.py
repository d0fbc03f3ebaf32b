"""A Spark session that tests share, and the settings for all tests."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from braid.hosts.spark.driver.local_spark import local_spark

os.environ.setdefault("SPARK_CONF_DIR", str(Path(__file__).with_name("conf")))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell makes background jobs ignore Ctrl-C, and child processes inherit that, but tests stop them by Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run all tests with the fixture `spark` in one process, so that they share one warm Spark."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    session = local_spark(2)
    session.sparkContext.setLogLevel("ERROR")
    session.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    yield session
    session.stop()
