"""Runs the queries of a job file on Spark: opens, starts, watches and stops them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from braid.errors import BraidError
from braid.files.job import AVAILABLE_NOW, JobFile, QueryEntry, SourceEntry, TableEntry
from braid.files.paths import identity
from braid.hosts.spark.driver.checkpoint_files import CheckpointFiles, source_offsets
from braid.hosts.spark.driver.checkpoint_log import file_system, last_batch
from braid.hosts.spark.driver.checks import repeated_name
from braid.hosts.spark.driver.control import control_offset
from braid.hosts.spark.driver.earlier_results import check_results
from braid.hosts.spark.driver.failures import SPARK_FAILURES, error_for, failure_text
from braid.hosts.spark.driver.listener import listener_of
from braid.hosts.spark.driver.local_spark import local_spark, submitted_spark
from braid.hosts.spark.driver.query import SparkQuery
from braid.hosts.spark.driver.rescaling import rescale_for
from braid.hosts.spark.driver.session import Session
from braid.hosts.spark.shared.control_source import UNNUMBERED, check_offset
from braid.runtime.fingerprint import differs_in_shards_only
from braid.runtime.manifest import check_format

SINKS_WITHOUT_SOURCE = ("memory", "foreach", "foreachbatch")
"""Formats that exist only as sinks of streams, so that looking them up as a source fails."""

WAITS = 20
"""How many times to wait for the last report of a query that has ended."""

WAIT_SECONDS = 0.5
"""How long each of these waits is."""


def open_session(settings: Mapping[str, str], log: Path | None = None) -> Session:
    """A session on the Spark that this program was submitted to, or else on a local Spark that logs to `log`."""
    try:
        submitted = submitted_spark(settings)
        if submitted is not None:
            return Session(submitted)
        spark = local_spark(settings=settings, log=log)
        if log is not None:
            # If Java ends, a thread of PySpark's would print a traceback; the next call to Java gives a better error.
            server: Any = spark.sparkContext._accumulatorServer
            server.handle_error = lambda *_: None
        return Session(spark)
    except SPARK_FAILURES as failure:
        raise error_for("Spark did not start", failure, log) from failure


def open_queries(session: Session, job: JobFile) -> list[tuple[QueryEntry, SparkQuery]]:
    """Declare all streams and parse all queries of a job; nothing runs yet."""
    for entry in job.streams:
        check_columns(entry)
        try:
            rows = read_stream(session.spark, entry)
            session.stream(entry.name, rows, time=entry.time, lateness=entry.lateness, rate=entry.rate)
        except (BraidError, PySparkException, Py4JError) as failure:
            raise entry.location.error(f"stream '{entry.name}': {failure_text(failure)}") from failure
    for table in job.tables:
        check_columns(table, "table")
        try:
            reader = session.spark.read.format(table.format).options(**table.options)
            rows = (reader.schema(table.schema) if table.schema else reader).load()
            session.table(table.name, rows, refresh=table.refresh)
        except (BraidError, PySparkException, Py4JError) as failure:
            raise table.location.error(f"table '{table.name}': {failure_text(failure)}") from failure
    opened = []
    for query in job.queries:
        try:
            spark_query = session.sql(query.text, plan=query.plan, shards=query.shards, idle_timeout=query.idle_timeout)
            if spark_query.dataframe.isStreaming:
                _ = spark_query.dataframe.writeStream  # Spark refuses some types of columns here.
        except (BraidError, PySparkException) as failure:
            raise query.location.error(f"query '{query.name}': {failure_text(failure)}") from failure
        if not spark_query.dataframe.isStreaming:
            raise query.location.error(f"query '{query.name}' reads no stream")
        _check_readable(query, spark_query.dataframe.columns)
        inputs: list[SourceEntry | TableEntry] = [*job.streams, *job.tables]
        read = (*spark_query.streams, *spark_query.tables)
        _check_not_read(query, [entry for entry in inputs if entry.name in read])
        _check_sink(session.spark, query)
        _check_checkpoint(session.spark, query, spark_query)
        opened.append((query, spark_query))
    return opened


def check_columns(entry: SourceEntry | TableEntry, what: str = "stream") -> None:
    for column, location in entry.columns:
        try:
            StructType.fromDDL(column)
        except (PySparkException, Py4JError) as failure:
            hint = "columns are written as 'ts TIMESTAMP, num INT', with the types of Spark SQL"
            raise location.error(f"{what} '{entry.name}': Spark does not understand {column}; {hint}") from failure


def _check_readable(query: QueryEntry, columns: Sequence[str]) -> None:
    """Refuse two columns of one name in files: Spark writes them, and then neither Spark nor others read them."""
    name = repeated_name(columns)
    if query.sink.directory is not None and name is not None:
        raise query.location.error(
            f"query '{query.name}' has two result columns called '{name}', and files with both cannot be read again; "
            "give one of them another name: SELECT a.v AS first, b.v AS second"
        )


def _check_not_read(query: QueryEntry, inputs: Sequence[SourceEntry | TableEntry]) -> None:
    """Refuse a query that writes to a directory that it reads.

    Once Spark has written results to a directory, it reads only files that it wrote there itself, and no others.
    """
    directory = query.sink.directory
    for entry in inputs:
        path = entry.options.get("path")
        if directory is not None and path is not None and identity(path) == identity(directory):
            what = "table" if isinstance(entry, TableEntry) else "stream"
            raise query.sink.location.error(
                f"query '{query.name}' writes to {directory}, which its {what} '{entry.name}' is read from; Spark "
                "would then ignore all other files there; give another path for the results"
            )


def _check_sink(spark: SparkSession, query: QueryEntry) -> None:
    """Check the sink and the checkpoint, which Spark itself would do only when the query starts."""
    locations = [(query.checkpoint, query.checkpoint_location)]
    if "path" in query.sink.options:
        locations.append((query.sink.options["path"], query.sink.location))
    jvm: Any = spark._jvm
    state: Any = spark._jsparkSession.sessionState()
    for path, location in locations:
        try:
            file_system(spark, path)
        except (PySparkException, Py4JError) as failure:
            raise location.error(f"query '{query.name}' cannot write to {path}: {failure_text(failure)}") from failure
    check_results(spark, query.name, query.sink, query.checkpoint)
    if query.sink.format.lower() not in SINKS_WITHOUT_SOURCE:
        try:
            jvm.org.apache.spark.sql.execution.datasources.DataSource.lookupDataSource(query.sink.format, state.conf())
        except (PySparkException, Py4JError) as failure:
            raise query.sink.location.error(f"query '{query.name}': {failure_text(failure)}") from failure


def rescale_checkpoints(
    spark: SparkSession, opened: list[tuple[QueryEntry, SparkQuery]], say: Callable[[str], None]
) -> None:
    """Divide the state of checkpoints anew whose queries have another number of shards or partitions now."""
    for entry, query in opened:
        offset = _control_offset(spark, entry)
        if offset is not None and differs_in_shards_only(offset["query"], query.fingerprint):
            say(f"query '{entry.name}': rescaling {entry.checkpoint}")
            try:
                rescale_for(spark, entry.checkpoint, query.fingerprint, say=say)
            except BraidError as problem:
                raise entry.checkpoint_location.error(f"query '{entry.name}': {problem}") from problem


def _control_offset(spark: SparkSession, query: QueryEntry) -> dict[str, Any] | None:
    """Braid's own offset in the last batch of a checkpoint; None if there is no batch, or the query is not Braid's."""
    batch = last_batch(spark, f"{query.checkpoint}/offsets")
    return None if batch < 0 else control_offset(source_offsets(CheckpointFiles(spark, query.checkpoint), batch))


def _check_checkpoint(spark: SparkSession, query: QueryEntry, spark_query: SparkQuery) -> None:
    """Refuse a checkpoint of another query, which the query itself would do only when it runs."""
    if last_batch(spark, f"{query.checkpoint}/offsets") < 0:
        return
    offset = _control_offset(spark, query)
    if offset is None:
        raise query.checkpoint_location.error(
            f"query '{query.name}': {query.checkpoint} is the checkpoint of a query that is not Braid's; name another"
        )
    try:
        check_format(offset.get("format", UNNUMBERED))
        if not differs_in_shards_only(offset["query"], spark_query.fingerprint):
            check_offset(offset, spark_query.fingerprint)
    except BraidError as problem:
        raise query.checkpoint_location.error(f"query '{query.name}': {problem}") from problem


@dataclass(frozen=True)
class Running:
    """A query that was started; `handle` is Spark's StreamingQuery."""

    name: str
    query: SparkQuery
    handle: Any

    @property
    def active(self) -> bool:
        return bool(self.handle.isActive)

    def check(self) -> None:
        """Raise the error that the query failed with, if it failed."""
        failure = self.handle.exception()
        if failure is not None:
            raise error_for(f"query '{self.name}' failed", failure) from failure

    def stop(self) -> None:
        """Stop the query. If Java has ended already, as when all processes are told to end, there is nothing to do."""
        with suppress(*SPARK_FAILURES):
            self.handle.stop()

    def wait_for_reports(self) -> None:
        """Wait until the query has all its reports; those of a micro-batch come a moment after its results."""
        listener = listener_of(self.query.dataframe.sparkSession)
        with suppress(*SPARK_FAILURES):
            for _ in range(WAITS):  # Each asks Java for the id of the run, which fails if Java has ended.
                if listener.wait_for_end(str(self.handle.runId), WAIT_SECONDS):
                    return

    def totals(self) -> dict[str, Any]:
        """Rows since the query was started, as far as they were reported, and those that wait now."""
        progress = self.query.progress()
        if progress is None:
            return {"rows_in": 0, "rows_joined": 0, "rows_out": 0, "late": {}, "untimed": {}, "waiting": 0}
        return {**progress["total"], "waiting": progress["waiting"]}


def start(job: JobFile, opened: list[tuple[QueryEntry, SparkQuery]]) -> list[Running]:
    """Start all queries; if one does not start, stop the others and raise its error."""
    started: list[Running] = []
    try:
        for entry, query in opened:
            started.append(Running(entry.name, query, _start(job, entry, query)))
    except BaseException:
        for running in started:
            running.stop()
        raise
    return started


def read_stream(spark: SparkSession, entry: SourceEntry) -> DataFrame:
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
        raise entry.sink.location.error(f"query '{entry.name}' does not start: {failure_text(failure)}") from failure
