"""Sessions, and streams as directories of files."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import braid
from braid.hosts.spark.driver.session import Session

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
    return written(path)


def written(path: Path) -> pa.Table:
    """The rows that a file sink has committed; files that an attempt without success has left do not count."""
    log = (line for entry in path.glob("_spark_metadata/[0-9]*") for line in entry.read_text().splitlines()[1:])
    files = {unquote(urlparse(json.loads(line)["path"]).path) for line in log}
    return pa.concat_tables([pq.read_table(file) for file in sorted(files)]) if files else pa.table({})
