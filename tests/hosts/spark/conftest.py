"""Sessions, and streams as directories of files."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import braid
from braid.hosts.spark.session import Session

Feed = Callable[..., Any]


@pytest.fixture
def session(spark: Any) -> Session:
    made: Session = braid.Session(spark)
    return made


@pytest.fixture
def feed(spark: Any, tmp_path: Path) -> Feed:
    """Writes a table as a file stream that brings `rows` rows in each micro-batch; returns its DataFrame."""

    def write(name: str, table: pa.Table, rows: int) -> Any:
        directory = tmp_path / "streams" / name
        directory.mkdir(parents=True)
        for number, first in enumerate(range(0, max(table.num_rows, 1), rows)):
            path = directory / f"{number:05d}.parquet"
            pq.write_table(table.slice(first, rows), path)
            os.utime(path, (1_000_000_000 + number,) * 2)
        schema = spark.read.parquet(str(directory)).schema
        return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(directory))

    return write


def run_out(dataframe: Any, tmp_path: Path, *, name: str = "result") -> pa.Table:
    """All that a streaming DataFrame gives until its sources are exhausted; called again, it goes on from there."""
    path = tmp_path / name
    writer = dataframe.writeStream.format("parquet").option("path", str(path))
    started = (
        writer.option("checkpointLocation", str(tmp_path / f"{name}-checkpoint")).trigger(availableNow=True).start()
    )
    started.awaitTermination()
    return pq.ParquetDataset(path).read()
