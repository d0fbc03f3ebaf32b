"""One Spark for all tests that share one."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from braid.hosts.spark.driver.local_spark import local_spark

os.environ.setdefault("SPARK_CONF_DIR", str(Path(__file__).with_name("conf")))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell has us ignore Ctrl-C in the background, and what we start would do so too; tests press it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share a Spark run in one process, one after the other, so that there is one and it gets warm."""
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
