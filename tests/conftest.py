"""One Spark for all tests."""

from collections.abc import Iterator
from typing import Any

import pytest

from braid.hosts.spark.session import local_spark


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    session = local_spark(2)
    session.sparkContext.setLogLevel("ERROR")
    session.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    yield session
    session.stop()
