"""The Spark of a session that was given none: the one this program was submitted to, or a local one."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import TimeoutExpired
from threading import Thread
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from braid.errors import FileError, reason_of
from braid.hosts.spark.driver.class_archive import archive_options
from braid.hosts.spark.driver.data_sources import register
from braid.hosts.spark.driver.java import find_java
from braid.hosts.spark.shared.control_source import ControlSource

EXCHANGE_REUSE = "spark.sql.exchange.reuse"

SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # The join follows the slowest stream; with another policy Spark would refuse results that are in time.
    "spark.sql.streaming.multipleWatermarkPolicy": "min",
    # Where a query uses one stateful result twice, Spark 4.3 would reuse a shuffle and then miss the watermark of the
    # second use: everything after it waits forever. This is a defect of Spark, with its own operators too.
    EXCHANGE_REUSE: "false",
    # Only the number of rows limits a batch for Python; a lower limit of bytes makes Spark measure it at each row.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
}
"""Settings that the join operator needs. All of them can be set while Spark runs."""

JAVA_ENDS_SECONDS = 20
"""The longest that Python waits for Java to end before it ends itself."""

LAUNCHER = Path(__file__).with_name("worker-python")
"""Starts the Python of this process for workers, in a faster way."""

_started: list[SparkContext] = []
"""The local Spark that this process has started, or nothing."""

_starting: list[Thread] = []
"""The threads that start Spark's Python processes."""


def local_spark(
    cores: int | None = None, settings: Mapping[str, str] | None = None, log: str | Path | None = None
) -> SparkSession:
    """A local Spark in this process, with defaults that suit streaming joins; `settings` override them.

    Its log goes to the file `log`, by default to standard error.
    """
    cores = cores or os.cpu_count() or 1
    if SparkContext._gateway is None:
        find_java()
    _choose_python()
    builder = SparkSession.builder.appName("braid")
    all_settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.session.timeZone": "UTC",
        # Users' own options are in spark.driver.extraJavaOptions, and come after these.
        "spark.driver.defaultJavaOptions": f"-Xss16m {archive_options()}",
        # The default way to write a checkpoint starts two processes for every file on a local disk.
        "spark.sql.streaming.checkpointFileManagerClass": (
            "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
        ),
        # Segments are compressed already; without compressing them again, writing takes half as long.
        "spark.sql.streaming.stateStore.rocksdb.compression": "none",
        # Snapshots of the state are written in the background. With 50 pending, a micro-batch waits for all of them.
        "spark.sql.streaming.stateStore.maintenanceInterval": "10s",
        # Tracebacks of stateful operators are whole. If others were shortened, these would have workers of their own.
        "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
        **SETTINGS,
        "spark.master": f"local[{cores}]",
        **(settings or {}),
    }
    has_own_python = runs_this_python(all_settings["spark.master"], os.environ["PYSPARK_PYTHON"])
    if has_own_python:
        all_settings.setdefault("spark.python.daemon.module", "braid.hosts.spark.worker.daemon")
    for name, value in all_settings.items():
        builder = builder.config(name, value)
    with _standard_error_to(log):
        spark = builder.getOrCreate()
    _started[:] = [spark.sparkContext]
    if has_own_python:
        thread = Thread(target=_start_python, args=[spark, cores], name="braid-start-python", daemon=True)
        _starting[:] = [thread]
        thread.start()
    return spark


def runs_this_python(master: str, python: str) -> bool:
    """Whether the workers of a Spark run on this machine, with the Python of this process."""
    return master.startswith("local") and python in (sys.executable, str(LAUNCHER))


def _start_python(spark: SparkSession, cores: int) -> None:
    """Start Spark's Python processes, which load their modules while the program declares its first query.

    Those that know sources start with a source that nobody reads, the workers with a job that does nothing. If this
    fails, because Spark is stopped meanwhile or no worker starts, a query will say so.
    """
    with suppress(Exception):
        register(spark, ControlSource)
        spark.readStream.format(ControlSource.name()).load()
        rows = spark.range(0, cores, 1, cores).mapInArrow(lambda batches: batches, "id long")
        rows.write.format("noop").mode("overwrite").save()


def end_java() -> None:
    """End the Java of a local Spark, and with it its workers. To be called when Python ends.

    Otherwise Java would end a little later than Python, and until then a worker may still run a task.
    """
    process: Any = getattr(SparkContext._gateway, "proc", None)
    if not _started or process is None:
        return
    # If Java ended under its job, py4j would print a traceback.
    for thread in _starting:
        thread.join(JAVA_ENDS_SECONDS)
    # A thread of PySpark's would print a traceback when Java ends.
    server: Any = _started.pop()._accumulatorServer
    if server is not None:
        server.handle_error = lambda *_: None
    with suppress(OSError, TimeoutExpired):
        process.stdin.close()
        process.wait(JAVA_ENDS_SECONDS)


def submitted_spark(settings: Mapping[str, str] | None = None) -> SparkSession | None:
    """The Spark that this program was submitted to (`spark-submit`), with these settings; None if it was not."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return None
    builder = SparkSession.builder
    for name, value in (settings or {}).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _choose_python() -> None:
    """Let workers run the Python of this process, by way of the faster `worker-python` if PySpark is installed."""
    os.environ.setdefault("BRAID_PYTHON", sys.executable)
    installed = "SPARK_HOME" not in os.environ and os.name == "posix"
    os.environ.setdefault("PYSPARK_PYTHON", str(LAUNCHER) if installed else sys.executable)


@contextmanager
def _standard_error_to(log: str | Path | None) -> Iterator[None]:
    """Processes that are started in this context write their standard error to `log`, until they end."""
    if log is None:
        yield
        return
    try:
        target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError as error:
        raise FileError(f"cannot write to the log {log}: {reason_of(error)}") from error
    sys.stderr.flush()
    saved = os.dup(2)
    try:
        os.dup2(target, 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(target)
