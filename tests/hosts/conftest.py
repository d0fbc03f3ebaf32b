"""Sessions on the shared Spark, and streams as directories of files."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import braid
from braid.hosts.spark.driver.session import Session
from braid.testing.stream_files import write_stream
from tests.hosts.spark.streams import Feed


@pytest.fixture
def session(spark: Any) -> Session:
    opened: Session = braid.Session(spark)
    return opened


@pytest.fixture
def feed(spark: Any, tmp_path: Path) -> Feed:
    """Writes a table as a file stream that brings `rows` rows in each micro-batch; returns its DataFrame."""

    def feed_table(name: str, table: pa.Table, rows: int) -> Any:
        directory = tmp_path / "streams" / name
        write_stream(directory, table, rows)
        schema = spark.read.parquet(str(directory)).schema
        return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(directory))

    return feed_table
