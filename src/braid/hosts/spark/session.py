"""Braid on Spark: streams in, queries out, one stateful operator each."""

from __future__ import annotations

import atexit
import logging
import shutil
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from pathlib import Path

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType, VariantType

from braid.adapt.controller import Policy
from braid.engine.routing import router_for
from braid.engine.segment import Segment
from braid.errors import BraidError, PlanError, QueryError, StreamError
from braid.hosts.arrival import Lateness, lateness_of
from braid.hosts.spark.bucket import CONTROL
from braid.hosts.spark.control import Control
from braid.hosts.spark.grouping import grouped, named
from braid.hosts.spark.job import Job
from braid.hosts.spark.listener import listener_of
from braid.hosts.spark.operator import STATISTICS, JoinOperator
from braid.hosts.spark.packing import PACKED_DDL, Packer
from braid.hosts.spark.query import SparkQuery
from braid.hosts.spark.room import fast_place, make_private, remove_orphans, session_directory
from braid.hosts.spark.silence import idle_seconds
from braid.hosts.spark.starting import SETTINGS, end_java, local_spark, submitted_spark
from braid.hosts.spark.watermarks import Watermark, watermark_of, watermarked_columns
from braid.language import parse
from braid.language.grouping import EVENT_TIME
from braid.model.checks import check, check_positive
from braid.model.plan import Plan, Written
from braid.model.query import Query
from braid.model.stream import Stream
from braid.model.window import LONGEST

IDLE_PARTITIONS = 8
"""So many partitions for each bucket are worth a word: Spark's default of 200 makes micro-batches last a minute."""

logger = logging.getLogger(__name__)


class Session:
    """Streams by name, and queries over them, on a Spark: that given, that which submitted this program, or its own.

    With `adapt`, the plans of queries change by themselves when statistics say that others cost less; a policy says how
    eagerly, False leaves them alone.

    `cache` is the directory on each host that arrays are kept in between micro-batches (by default shared memory, if
    there is enough), and `cache_limit` how many bytes of it they may take on each host (by default half of it). What
    does not fit is rebuilt from the state store, which takes time and nothing else.

    `log` is a file for what a Spark of its own says, which else goes to standard error.
    """

    def __init__(
        self,
        spark: SparkSession | None = None,
        *,
        adapt: bool | Policy = True,
        cache: str | None = None,
        cache_limit: int | None = None,
        log: str | Path | None = None,
    ) -> None:
        check(adapt, bool | Policy, "adapt", PlanError)
        self.spark = spark or submitted_spark() or local_spark(log=log)
        for name, value in SETTINGS.items():
            self.spark.conf.set(name, value)
        self._streams: dict[str, tuple[Stream, DataFrame]] = {}
        if cache_limit is not None and not (isinstance(cache_limit, int) and cache_limit >= 0):
            raise BraidError(f"cache_limit is {cache_limit!r}; give a number of bytes, 0 for no cache at all")
        # Java, and so what it starts, may have another current directory.
        place = Path(cache).absolute() if cache else fast_place()
        remove_orphans(place)
        self._cache_limit = cache_limit
        self._directory = session_directory(place)
        try:
            make_private(self._directory)
        except OSError as problem:
            raise BraidError(f"nothing can be kept in {place} ({problem.strerror}); give another cache=..") from problem
        atexit.register(_tidy_up, self._directory)
        self._adapt = adapt
        self._listener = listener_of(self.spark)
        self._listener.directories.add(self._directory)

    def stream(self, name: str, dataframe: DataFrame, *, time: str = "ts", lateness: Lateness | None = None) -> None:
        """Declare a stream: any DataFrame with an event-time column, streaming or not.

        `lateness` is how much older than the newest a row may be; none, if nothing is said. A DataFrame that has a
        watermark, its own or of what it was made of, says so itself: rows that are late to Spark are late here.
        """
        if not isinstance(dataframe, DataFrame):
            raise StreamError(f"stream '{name}' is {type(dataframe).__name__}; give a Spark DataFrame")
        schema = _arrow_schema(name, dataframe.schema)
        if lateness is not None and watermark_of(dataframe) is not None:
            raise StreamError(
                f"stream '{name}' has a watermark already, which tells how late its rows may be; "
                f"leave out lateness={lateness!r}, or withWatermark"
            )
        declared = Stream(name, schema, time, lateness_of(name, "0 seconds" if lateness is None else lateness))
        _check_time(declared, dataframe)
        self._streams[name] = (declared, dataframe)

    def sql(
        self,
        text: str,
        *,
        plan: Written | None = None,
        buckets: int | None = None,
        idle_timeout: Lateness | None = None,
    ) -> SparkQuery:
        """A query over the declared streams; its `dataframe` is streaming if any of its streams is."""
        if buckets is not None:
            check_positive(buckets, "the number of buckets")
        query = parse(text, {name: stream for name, (stream, _) in self._streams.items()})
        # A checkpoint knows its sources by their places, and the text is what it holds on to.
        used = dict.fromkeys(source.declared.name for source in query.inputs)
        streams = tuple(self._streams[name][0] for name in used)
        wanted = buckets or self._cores()
        shown = (*query.outputs, *(query.grouping.outputs if query.grouping is not None else ()))
        event_time = _free_name(EVENT_TIME, [getattr(output, "name", "") for output in shown])
        streaming = self._are_streaming(streams)
        marked = {name: watermark_of(self._streams[name][1]) for name in used}
        watermarked = frozenset(name for name, kind in marked.items() if kind is not None)
        derived = frozenset(name for name, kind in marked.items() if kind is Watermark.DERIVED)
        idle = None if idle_timeout is None else idle_seconds(idle_timeout)
        _check_watermarks(query, watermarked, idle)
        router = router_for(query, wanted)
        if streaming:
            self._warn_of_idle_partitions(router.buckets)
        labels = self._labels(router.buckets)
        written = Plan.of(query, plan).written
        job = Job(text, streams, written, router, event_time, labels, self._partitions, watermarked, derived)
        name = f"braid_{uuid.uuid4().hex[:12]}"
        control = Control(self._directory / name / "control")
        running = SparkQuery(name, job, control, self._adapt, idle)
        joined = self._streaming(name, job, control, idle is not None) if streaming else self._static(job)
        running.dataframe = grouped(joined, job)
        if streaming:
            self._listener.queries[name] = running
        return running

    def _are_streaming(self, streams: Sequence[Stream]) -> bool:
        kinds = {stream.name: self._streams[stream.name][1].isStreaming for stream in streams}
        if len(set(kinds.values())) > 1:
            still = next(name for name, moves in kinds.items() if not moves)
            raise StreamError(
                f"'{still}' is a table and the other streams of the query are not; join it to the result afterwards: "
                f"query.dataframe.join({still}, ..)"
            )
        return any(kinds.values())

    def _streaming(self, name: str, job: Job, control: Control, passes_silent: bool) -> DataFrame:
        messages = self._messages(control, job.labels)
        # A checkpoint knows its sources by their places: messages are first, whoever else reads them.
        packed = [messages]
        for stream in job.streams:
            rows = self._packed(job, stream)
            if passes_silent:
                rows = rows.union(messages.withColumn("reached", _reached(stream)).filter("reached IS NOT NULL"))
            if stream.name not in job.watermarked:
                rows = rows.withWatermark("reached", _spark_interval(stream.lateness))
            packed.append(rows)
        schema = _result_schema(job)
        _check_result(schema)
        operator = JoinOperator(job.to_json(), str(self._directory / name), self._cache_limit)
        joined = (
            reduce(DataFrame.union, (part.select("bucket", "source", "payload") for part in packed))
            .groupBy("bucket")
            .transformWithStateInPandas(operator, schema, "Append", "EventTime", eventTimeColumnName=job.event_time)
        )
        report = schema.names[-1]
        observed = joined.observe(name, F.collect_list(report).alias("reports"))
        return observed.filter(F.col(report).isNull()).drop(report)

    def _static(self, job: Job) -> DataFrame:
        packed = reduce(DataFrame.union, [self._packed(job, stream) for stream in job.streams])
        fields = _result_schema(job).fields[:-1]
        text = job.to_json()
        # Columns travel by their places, because two may have one name.
        places = StructType([StructField(str(place), field.dataType) for place, field in enumerate(fields)])
        joined = packed.groupBy("bucket").applyInArrow(lambda table: _run_whole(text, table), places)
        return joined.toDF(*(field.name for field in fields))

    def _packed(self, job: Job, stream: Stream) -> DataFrame:
        dataframe = self._streams[stream.name][1]
        _check_apart(stream.name, dataframe, job.columns_read(stream.name))
        # Columns travel by their places: PySpark does not find every name there may be.
        columns = [named(name).alias(str(place)) for place, name in enumerate(job.columns_read(stream.name))]
        return dataframe.select(*columns).mapInArrow(Packer(job.to_json(), stream.name), PACKED_DDL)

    def _messages(self, control: Control, labels: Sequence[int]) -> DataFrame:
        return control.messages(self.spark).select(
            F.explode(F.array(*(F.lit(label).cast("int") for label in labels))).alias("bucket"),
            F.lit(CONTROL).alias("source"),
            F.col("value").cast("binary").alias("payload"),
        )

    def _cores(self) -> int:
        """The cores of the cluster: as many as were asked for, where not all may be there yet, else as there are."""
        context = self.spark.sparkContext
        return cores_asked_for(str(context.master), dict(context.getConf().getAll())) or context.defaultParallelism

    @property
    def _partitions(self) -> int:
        """How many state stores a query has, one for each task of a micro-batch."""
        return int(self.spark.conf.get("spark.sql.shuffle.partitions") or 1)

    def _warn_of_idle_partitions(self, buckets: int) -> None:
        partitions = self._partitions
        if partitions > IDLE_PARTITIONS * buckets:
            logger.warning(
                "spark.sql.shuffle.partitions is %d and the query has %d buckets: every micro-batch starts %d tasks "
                "and commits as many state stores; set it to %d before the query is started for the first time",
                partitions,
                buckets,
                partitions,
                buckets,
            )

    def _labels(self, buckets: int) -> tuple[int, ...]:
        """Names for the buckets that Spark's hash sends to partitions of their own, as far as there are so many.

        The first is always 0.
        """
        partitions = self._partitions
        candidates = self.spark.range(64 * max(buckets, partitions)).select(
            F.col("id").cast("int"), F.expr(f"pmod(hash(cast(id as int)), {partitions})")
        )
        by_partition: dict[int, list[int]] = {}
        for label, partition in candidates.collect():
            by_partition.setdefault(partition, []).append(label)
        rounds = (labels[turn] for turn in range(64) for labels in by_partition.values() if turn < len(labels))
        return tuple(next(rounds) for _ in range(buckets))


def _tidy_up(directory: Path) -> None:
    """A worker that is still at a task would make the directory again: workers go first, where they are ours."""
    end_java()
    shutil.rmtree(directory, ignore_errors=True)


def cores_asked_for(master: str, settings: Mapping[str, str]) -> int | None:
    """The cores that a cluster brings up one after the other; None if it has what there is, or somebody says how many.

    >>> cores_asked_for("yarn", {"spark.executor.instances": "4", "spark.executor.cores": "2"})
    8
    """
    said = "spark.default.parallelism" in settings or settings.get("spark.dynamicAllocation.enabled") == "true"
    executors = settings.get("spark.executor.instances")
    if said or executors is None or not master.startswith(("yarn", "k8s")):
        return None
    return int(executors) * int(settings.get("spark.executor.cores", "1"))


def _arrow_schema(stream: str, schema: StructType) -> pa.Schema:
    for field in schema:
        if _holds(field.dataType, _is_collated):
            raise StreamError(
                f"column '{field.name}' of stream '{stream}' is {field.dataType.simpleString()}, and texts are "
                "compared byte by byte here; leave the column out, or cast it to STRING"
            )
        try:
            to_arrow_schema(StructType([field]), timezone="UTC")
        except PySparkException as problem:
            raise StreamError(
                f"column '{field.name}' of stream '{stream}' is {field.dataType.simpleString()}, which Spark does not "
                "give to Python; leave the column out, or cast it"
            ) from problem
    return to_arrow_schema(schema, timezone="UTC")


def _check_apart(stream: str, dataframe: DataFrame, read: Sequence[str]) -> None:
    """Spark does not find a column if another has its name but for the case, unless it is told to mind that."""
    if dataframe.sparkSession.conf.get("spark.sql.caseSensitive") == "true":
        return
    for name in read:
        alike = [other for other in dataframe.columns if other.lower() == name.lower()]
        if len(alike) > 1:
            raise StreamError(
                f"stream '{stream}' has columns {' and '.join(map(repr, alike))}, which are one name to Spark; rename "
                "one of them, leave it out, or set spark.sql.caseSensitive"
            )


def _run_whole(job_text: str, table: pa.Table) -> pa.Table:
    """All rows of a bucket at once, for tables that are no streams."""
    from braid.hosts.arrival import Arrival, steps

    job = Job.from_json(job_text)
    site = job.site()
    parts: dict[str, list[pa.RecordBatch]] = {source.alias: [] for source in job.narrow.inputs}
    for payload in table.column("payload").to_pylist():
        segment = Segment.from_bytes(payload)
        parts[segment.stream].append(segment.rows)
    arrivals = [
        Arrival(source.alias, _table(parts[source.alias], source.declared), source.declared.time, "0 s")
        for source in job.narrow.inputs
    ]
    windows = [(source.alias, source.window) for source in job.narrow.inputs]
    results = [batch for segments in steps(arrivals, None, windows) for batch in site.step(segments)] + site.finish()
    whole = pa.Table.from_batches(results, site.schema)
    return whole.rename_columns([str(place) for place in range(whole.num_columns)])


def _table(parts: list[pa.RecordBatch], stream: Stream) -> pa.Table:
    return pa.Table.from_batches(parts, stream.schema)


def _result_schema(job: Job) -> StructType:
    """The columns of the results, and last the one with which buckets report."""
    fields = from_arrow_schema(job.site().schema)
    return StructType([*fields.fields]).add(_free_name(STATISTICS, fields.names), StringType())


def _check_result(schema: StructType) -> None:
    """PySpark makes no VARIANT of what the operator gives back, as it does for functions without state."""
    for field in schema:
        if _holds(field.dataType, lambda part: isinstance(part, VariantType)):
            raise QueryError(
                f"column '{field.name}' of the result is {field.dataType.simpleString()}, which Spark does not take "
                "back from the operator of a stream; cast it to STRING before the join, or do not select it"
            )


def _is_collated(given: DataType) -> bool:
    return isinstance(given, StringType) and not given.isUTF8BinaryCollation()


def _holds(given: DataType, wanted: Callable[[DataType], bool]) -> bool:
    """Whether values of a type are, or hold, some of another."""
    match given:
        case StructType():
            return any(_holds(field.dataType, wanted) for field in given)
        case ArrayType():
            return _holds(given.elementType, wanted)
        case MapType():
            return _holds(given.keyType, wanted) or _holds(given.valueType, wanted)
    return wanted(given)


def _free_name(wanted: str, taken: Sequence[str]) -> str:
    """A name that no column has, as Spark compares names."""
    while wanted in {name.lower() for name in taken}:
        wanted = f"_{wanted}"
    return wanted


def _check_time(stream: Stream, dataframe: DataFrame) -> None:
    """By any other column than the one with the watermark, rows in time for Spark may be older than it allows."""
    # Files remember which column had one when they were written.
    marked = watermarked_columns(dataframe) if watermark_of(dataframe) is not None else []
    if marked and stream.time not in marked:
        raise StreamError(
            f"stream '{stream.name}' has a watermark on '{marked[0]}' and is declared by '{stream.time}', "
            f"which may be behind that; give time={marked[0]!r} (of a window, window_time makes one), "
            "or take the watermark off"
        )


def _check_watermarks(query: Query, watermarked: frozenset[str], idle: float | None) -> None:
    """Spark moves its watermarks on its own, also while the operator has nothing to do and hears nothing of it."""
    given = f"stream '{min(watermarked, default='')}' has a watermark of Spark's"
    instead = "declare it without (no withWatermark, nor what needs one), or write it to files and declare those"
    if watermarked and (query.counts_rows or query.exclusions):
        raise StreamError(f"{given}, and results of this query wait for ours; {instead}")
    if watermarked and idle is not None:
        raise StreamError(f"{given}, which only its rows move, not idle_timeout; {instead}")


def _reached(stream: Stream) -> SparkColumn:
    """How far a message says that a stream has come, if it does."""
    reached = F.from_json(F.col("payload").cast("string"), "reached map<string, bigint>")["reached"]
    return F.timestamp_micros(reached[stream.name])


def _spark_interval(lateness: int) -> str:
    """Spark's watermark is earlier than every result that is in time.

    It counts milliseconds, and forbids what is not later than itself, while the engine takes what is not earlier.
    """
    # No two timestamps of Spark are as far from each other as the longest window is long.
    return f"{min(lateness, LONGEST) // 1_000 + 1} milliseconds"
