"""The Spark of a session that is given none: the one that this program was submitted to, or one that it starts."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from braid.errors import FileError, reason_of
from braid.hosts.spark.driver.java import find_java

SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # The operator follows the slowest stream; by another policy Spark would forbid results that are in time.
    "spark.sql.streaming.multipleWatermarkPolicy": "min",
    # Batches for Python are as many rows as Spark says; with any other limit of bytes it measures a batch at each row.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
}
"""What the operator needs of a running session; all of it may be set while Spark runs."""

JAVA_ENDS_SECONDS = 20
"""Java has so long to end before Python ends without it."""

_started: list[SparkContext] = []
"""The Spark that this process has started for a session, if it has."""


def local_spark(
    cores: int | None = None, settings: Mapping[str, str] | None = None, log: str | Path | None = None
) -> SparkSession:
    """A Spark of this process with settings that suit streaming joins, and with those given.

    What it says goes to the file `log`, or else to standard error.
    """
    cores = cores or os.cpu_count() or 1
    if SparkContext._gateway is None:
        find_java()
    _choose_python()
    builder = SparkSession.builder.master(f"local[{cores}]").appName("braid")
    suited = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.extraJavaOptions": "-Xss16m",
        # Hadoop's other way to write a checkpoint starts two processes for every file on a local disk.
        "spark.sql.streaming.checkpointFileManagerClass": (
            "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
        ),
        # Segments are compressed already; what is written at a time takes half as long if it is not done again.
        "spark.sql.streaming.stateStore.rocksdb.compression": "none",
        # Snapshots of the state go up beside the micro-batches; fifty behind, Spark has one of them wait for all.
        "spark.sql.streaming.stateStore.maintenanceInterval": "10s",
        **SETTINGS,
        **(settings or {}),
    }
    for name, value in suited.items():
        builder = builder.config(name, value)
    with _standard_error_to(log):
        spark = builder.getOrCreate()
    _started[:] = [spark.sparkContext]
    return spark


def end_java() -> None:
    """End the Java of a Spark that was started here, and so its workers; for when Python ends.

    Left alone it ends a little later than Python does. Until then a worker may be at a task that nobody waits for.
    """
    process: Any = getattr(SparkContext._gateway, "proc", None)
    if not _started or process is None:
        return
    # This thread of PySpark's would print a traceback because Java has gone.
    server: Any = _started.pop()._accumulatorServer
    if server is not None:
        server.handle_error = lambda *_: None
    with suppress(OSError, TimeoutExpired):
        process.stdin.close()
        process.wait(JAVA_ENDS_SECONDS)


def submitted_spark(settings: Mapping[str, str] | None = None) -> SparkSession | None:
    """The Spark that submitted this program (`spark-submit`), with these settings; None if nobody did."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return None
    builder = SparkSession.builder
    for name, value in (settings or {}).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _choose_python() -> None:
    """The workers' Python is this one; and if Spark is the installed one, they import it as it is installed."""
    os.environ.setdefault("BRAID_PYTHON", sys.executable)
    installed = "SPARK_HOME" not in os.environ and os.name == "posix"
    own = str(Path(__file__).with_name("worker-python"))
    os.environ.setdefault("PYSPARK_PYTHON", own if installed else sys.executable)


@contextmanager
def _standard_error_to(log: str | Path | None) -> Iterator[None]:
    """What is started meanwhile writes its standard error to a file, as long as it lives; ours is restored."""
    if log is None:
        yield
        return
    try:
        target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError as error:
        raise FileError(f"cannot write to the log {log}: {reason_of(error)}") from error
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        os.dup2(target, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(target)
