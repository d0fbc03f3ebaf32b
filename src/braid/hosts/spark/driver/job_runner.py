"""The queries of a job file on Spark: opened, started, watched and stopped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from braid.errors import BraidError
from braid.files.job import AVAILABLE_NOW, JobFile, QueryEntry, SourceEntry
from braid.files.paths import identity
from braid.hosts.spark.driver.failures import SPARK_FAILURES, error_for, told
from braid.hosts.spark.driver.listener import listener_of
from braid.hosts.spark.driver.local_spark import local_spark, submitted_spark
from braid.hosts.spark.driver.query import SparkQuery
from braid.hosts.spark.driver.session import Session

SINKS_WITHOUT_SOURCE = ("memory", "foreach", "foreachbatch")
"""Formats that Spark knows only when it writes a stream."""

LOOKS, BETWEEN_LOOKS = 20, 0.5
"""How often, and seconds between, to look for the last report of a query that has ended."""


def open_session(settings: Mapping[str, str], log: Path | None = None) -> Session:
    """A session on the Spark that submitted this program, or else on one of its own; `log` takes what Spark says."""
    try:
        submitted = submitted_spark(settings)
        if submitted is not None:
            return Session(submitted)
        spark = local_spark(settings=settings, log=log)
        if log is not None:
            # If Java ends, this thread of PySpark's would print a traceback; the next who calls Java says it better.
            server: Any = spark.sparkContext._accumulatorServer
            server.handle_error = lambda *_: None
        return Session(spark)
    except SPARK_FAILURES as failure:
        raise error_for("Spark did not start", failure, log) from failure


def open_queries(session: Session, job: JobFile) -> list[tuple[QueryEntry, SparkQuery]]:
    """Every stream found and every query understood; nothing runs yet."""
    for entry in job.streams:
        _check_columns(entry)
        try:
            session.stream(entry.name, _source(session.spark, entry), time=entry.time, lateness=entry.lateness)
        except (BraidError, PySparkException, Py4JError) as failure:
            raise entry.place.wrong(f"stream '{entry.name}': {told(failure)}") from failure
    opened = []
    for query in job.queries:
        try:
            found = session.sql(query.text, plan=query.plan, shards=query.shards, idle_timeout=query.idle_timeout)
            if found.dataframe.isStreaming:
                _ = found.dataframe.writeStream  # Spark refuses some types of columns here.
        except (BraidError, PySparkException) as failure:
            raise query.place.wrong(f"query '{query.name}': {told(failure)}") from failure
        if not found.dataframe.isStreaming:
            raise query.place.wrong(f"query '{query.name}' reads no stream")
        _check_not_read(query, [entry for entry in job.streams if entry.name in found.streams])
        _check_sink(session.spark, query)
        opened.append((query, found))
    return opened


def _check_columns(entry: SourceEntry) -> None:
    for column, place in entry.columns:
        try:
            StructType.fromDDL(column)
        except (PySparkException, Py4JError) as failure:
            hint = "columns are written as 'ts TIMESTAMP, num INT', with the types of Spark SQL"
            raise place.wrong(f"stream '{entry.name}': Spark does not understand {column}; {hint}") from failure


def _check_not_read(query: QueryEntry, streams: Sequence[SourceEntry]) -> None:
    """A directory that Spark has written to is read by its list of what it wrote: files of others are passed over."""
    directory = query.sink.directory
    for entry in streams:
        path = entry.options.get("path")
        if directory is not None and path is not None and identity(path) == identity(directory):
            raise query.sink.place.wrong(
                f"query '{query.name}' writes to {directory}, which its stream '{entry.name}' is read from; of what "
                "else comes there Spark would then read nothing; give another path for the results"
            )


def _check_sink(spark: SparkSession, query: QueryEntry) -> None:
    """Spark itself would look at the sink and at the checkpoint only when the query is started."""
    places = [(query.checkpoint, query.checkpoint_place)]
    if "path" in query.sink.options:
        places.append((query.sink.options["path"], query.sink.place))
    jvm: Any = spark._jvm
    state: Any = spark._jsparkSession.sessionState()
    for path, place in places:
        try:
            _file_system(spark, path)
        except (PySparkException, Py4JError) as failure:
            raise place.wrong(f"query '{query.name}' cannot write to {path}: {told(failure)}") from failure
    _check_results(spark, query)
    if query.sink.format.lower() not in SINKS_WITHOUT_SOURCE:
        try:
            jvm.org.apache.spark.sql.execution.datasources.DataSource.lookupDataSource(query.sink.format, state.conf())
        except (PySparkException, Py4JError) as failure:
            raise query.sink.place.wrong(f"query '{query.name}': {told(failure)}") from failure


def _check_results(spark: SparkSession, query: QueryEntry) -> None:
    """A sink of files silently leaves out batches whose numbers it has; a new checkpoint counts from 0 again.

    Offsets are written before results: who has fewer has not written all of these.
    """
    directory = query.sink.directory
    if directory is None:
        return
    if _last_batch(spark, f"{directory}/_spark_metadata") > _last_batch(spark, f"{query.checkpoint}/offsets"):
        raise query.sink.place.wrong(
            f"query '{query.name}': the results in {directory} were written with another checkpoint, and Spark would "
            "leave out batches that are there already; go on with that checkpoint, or give a new path for the results"
        )


def _last_batch(spark: SparkSession, log: str) -> int:
    """The number of the last batch in a log of Spark's, a file each; -1 if there is none."""
    files, place = _file_system(spark, log)
    names = [status.getPath().getName() for status in files.listStatus(place)] if files.exists(place) else []
    return max((int(name.removesuffix(".compact")) for name in names if name[:1].isdigit()), default=-1)


def _file_system(spark: SparkSession, path: str) -> tuple[Any, Any]:
    """Where a path is, as Hadoop has it, and the path."""
    jvm: Any = spark._jvm
    place = jvm.org.apache.hadoop.fs.Path(path)
    return place.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()), place


@dataclass(frozen=True)
class Running:
    """A query that was started."""

    name: str
    query: SparkQuery
    handle: Any

    @property
    def active(self) -> bool:
        return bool(self.handle.isActive)

    def check(self) -> None:
        """Raises what the query failed with, if it did."""
        failure = self.handle.exception()
        if failure is not None:
            raise error_for(f"query '{self.name}' failed", failure) from failure

    def stop(self) -> None:
        """Let it finish with what it is at; if Java has gone already, as when all processes are told to end, it has."""
        with suppress(*SPARK_FAILURES):
            self.handle.stop()

    def wait_for_reports(self) -> None:
        """Until all has been reported; what the last micro-batch did comes a moment after its results."""
        listener = listener_of(self.query.dataframe.sparkSession)
        with suppress(*SPARK_FAILURES):
            for _ in range(LOOKS):  # Each asks Java for the run, and so finds out if that has gone.
                if listener.wait_for_end(str(self.handle.runId), BETWEEN_LOOKS):
                    return

    def totals(self) -> dict[str, int]:
        """Rows in and out since it was started, as far as they were reported."""
        progress = self.query.progress()
        return {"rows_in": 0, "rows_out": 0} if progress is None else dict(progress["total"])


def start(job: JobFile, opened: list[tuple[QueryEntry, SparkQuery]]) -> list[Running]:
    """All of them, or none: if one does not start, the others are stopped."""
    started: list[Running] = []
    try:
        for entry, query in opened:
            started.append(Running(entry.name, query, _start(job, entry, query)))
    except BaseException:
        for running in started:
            running.stop()
        raise
    return started


def _source(spark: SparkSession, entry: SourceEntry) -> DataFrame:
    reader = spark.readStream.format(entry.format).options(**entry.options)
    return (reader.schema(entry.schema) if entry.schema else reader).load()


def _start(job: JobFile, entry: QueryEntry, query: SparkQuery) -> Any:
    writer = query.dataframe.writeStream.format(entry.sink.format).options(**entry.sink.options)
    writer = writer.queryName(entry.name).option("checkpointLocation", entry.checkpoint)
    if job.trigger == AVAILABLE_NOW:
        writer = writer.trigger(availableNow=True)
    elif job.trigger is not None:
        writer = writer.trigger(processingTime=f"{job.trigger} milliseconds")
    try:
        return writer.start()
    except (PySparkException, Py4JError) as failure:
        raise entry.sink.place.wrong(f"query '{entry.name}' does not start: {told(failure)}") from failure
