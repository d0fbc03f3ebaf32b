"""`braid.Session`: declares streams on Spark and makes queries over them."""

from __future__ import annotations

import atexit
import logging
import shutil
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any
from weakref import WeakValueDictionary

from pyspark.sql import DataFrame, SparkSession

from braid.adapt.controller import Policy
from braid.errors import BraidError, PlanError, StreamError
from braid.hosts.spark.driver import cluster
from braid.hosts.spark.driver.checks import arrow_schema, check_is_spark, check_time, check_watermarks, repeated_name
from braid.hosts.spark.driver.control import Control
from braid.hosts.spark.driver.distinct import distinct
from braid.hosts.spark.driver.expressions import SparkTypes, projected
from braid.hosts.spark.driver.grouping import grouped
from braid.hosts.spark.driver.listener import listener_of
from braid.hosts.spark.driver.local_spark import EXCHANGE_REUSE, SETTINGS, end_java, local_spark, submitted_spark
from braid.hosts.spark.driver.pipeline import static_join, streaming_join
from braid.hosts.spark.driver.query import SparkQuery
from braid.hosts.spark.driver.ranking import ranked
from braid.hosts.spark.driver.spark_watermarks import Watermark, strongest, watermark_of
from braid.hosts.spark.driver.views import SparkViews
from braid.hosts.spark.driver.workers import check_workers
from braid.hosts.spark.shared.cache_space import fast_directory, make_private, remove_orphans, session_directory
from braid.language.default_window import with_default_window
from braid.language.free_names import event_time_name
from braid.language.reading import read
from braid.language.views import BoundQuery
from braid.model.checks import check, check_positive, is_figure
from braid.model.duration import Duration, duration_text, lateness_of
from braid.model.html import heading, table
from braid.model.plan import Plan, Written
from braid.model.stream import Stream
from braid.model.table import Table
from braid.runtime.idleness import idle_seconds
from braid.runtime.query_spec import QuerySpec
from braid.runtime.routing import router_for

logger = logging.getLogger(__name__)


class Session:
    """Declared streams, and queries over them, on one Spark.

    `spark` is the Spark to run on. By default it is the one that this program was submitted to (`spark-submit`), or
    else a local Spark that the session starts. `log` is the file for the log of such a local Spark, by default standard
    error.

    With `adapt`, queries change their plans by themselves when statistics say that another plan costs less. A policy
    says how eagerly they do; with False, plans change only on request.

    `cache` is the directory on each host where arrays are cached between micro-batches, by default shared memory if
    there is enough. `cache_limit` is the most bytes that the cache may take on each host, by default half of the file
    system. State that does not fit is rebuilt from the state store, which takes time but changes no result.
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
        if cache_limit is not None and not (isinstance(cache_limit, int) and cache_limit >= 0):
            raise BraidError(f"cache_limit is {cache_limit!r}; give a number of bytes, 0 for no cache at all")
        submitted = submitted_spark() if spark is None else None
        self.spark = spark or submitted or local_spark(log=log)
        check_workers(self.spark)
        for name, value in SETTINGS.items():
            self.spark.conf.set(name, value)
        self._declared: dict[str, Stream] = {}
        self._dataframes: dict[str, DataFrame] = {}
        self._rates: dict[str, float] = {}
        self._tables: dict[str, Table] = {}
        self._refreshed: set[str] = set()
        """The tables whose files are listed anew after each micro-batch."""
        self._adapt = adapt
        self._cache_limit = cache_limit
        self._directory = make_cache_directory(cache)
        self._queries: WeakValueDictionary[str, SparkQuery] = WeakValueDictionary()
        self._owns_spark = spark is None and submitted is None
        self._listener = listener_of(self.spark)
        self._listener.directories.add(self._directory)

    def stream(
        self,
        name: str,
        dataframe: DataFrame,
        *,
        time: str = "ts",
        lateness: Duration | None = None,
        rate: float | None = None,
    ) -> None:
        """Declare a stream: any DataFrame with an event-time column, streaming or not.

        `lateness` is how much older than the newest row before it a row may be, by default not at all. A DataFrame with
        a watermark, of its own or of a DataFrame it was made from, has no `lateness`: rows that are late for Spark are
        late here too.

        `rate` is about how many rows it brings in a second. A query that has to copy rows to several shards copies
        those of slow streams.
        """
        check_is_spark(name, dataframe)
        schema = arrow_schema(name, dataframe.schema)
        if lateness is not None and watermark_of(dataframe) is not None:
            raise StreamError(
                f"stream '{name}' has a watermark already, which tells how late its rows may be; "
                f"leave out lateness={lateness!r}, or withWatermark"
            )
        declared = Stream(name, schema, time, lateness_of(name, "0 seconds" if lateness is None else lateness))
        check_time(declared, dataframe)
        if rate is not None and not (is_figure(rate) and rate > 0):
            raise StreamError(f"the rate of stream '{name}' must be a number above 0, not {rate!r}")
        self._tables.pop(name, None)
        self._declared[name] = declared
        self._dataframes[name] = dataframe
        self._rates[name] = 1.0 if rate is None else float(rate)

    def table(self, name: str, dataframe: DataFrame, *, refresh: bool = False) -> None:
        """Declare a table that streams are joined with: any DataFrame that is not streaming. It has no event time.

        Each row of a stream meets the rows that the table has when the row is read. Files of a table are listed once;
        with `refresh` they are listed anew after each micro-batch. Then results depend on when the table changes, and a
        micro-batch that is repeated after a crash may meet newer rows of the table than before.
        """
        check_is_spark(name, dataframe, "table")
        if dataframe.isStreaming:
            raise StreamError(f"table '{name}' is a streaming DataFrame; declare it with session.stream(..)")
        table = Table(name, arrow_schema(name, dataframe.schema, "table"))
        self._declared.pop(name, None)
        self._tables[name] = table
        self._dataframes[name] = dataframe
        if refresh:
            self._refreshed.add(name)
        else:
            self._refreshed.discard(name)

    def sql(
        self,
        text: str,
        *,
        plan: Written | None = None,
        shards: int | None = None,
        idle_timeout: Duration | None = None,
        window: Duration | None = None,
    ) -> SparkQuery:
        """A query over the declared streams; its `dataframe` is streaming if its streams are.

        `plan` is the first plan, by default the order of the text. `shards` is the number of parts the work is split
        into, by default the number of cores. A stream that brings nothing for as long as `idle_timeout` is idle, and
        results do not wait for it any longer. Streams without a window in brackets have a `[RANGE ..]` of the length
        `window`, if that is given.
        """
        if window is not None:
            text = with_default_window(text, window, self._tables)
        if shards is not None:
            check_positive(shards, "the number of shards")
        idle = None if idle_timeout is None else idle_seconds(idle_timeout)
        types = SparkTypes(self.spark)

        def start(bound: BoundQuery, views: SparkViews) -> SparkQuery:
            return self._start(bound, views, types, None, shards, idle)

        views = SparkViews(self.spark, self._dataframes, self._rates, start)
        bound = read(text, {**self._declared, **self._tables}, views.define, types)
        query = self._start(bound, views, types, plan, shards, idle)
        query.text = text
        if query.dataframe.isStreaming:
            self._warn_of(query)
        return query

    def _warn_of(self, query: SparkQuery) -> None:
        """Warn of what would go wrong only later, without a word of Spark's."""
        repeated = repeated_name(query.dataframe.columns)
        if repeated is not None:
            logger.warning(
                "two result columns are called '%s': files that Spark writes with both cannot be read again; "
                "give one of them another name with AS",
                repeated,
            )
        if self.spark.conf.get(EXCHANGE_REUSE) != SETTINGS[EXCHANGE_REUSE]:
            logger.warning(
                "%s was set to true: what uses a result of this query twice, such as two aggregates that are joined, "
                "may give no rows; set it to false before you start the query",
                EXCHANGE_REUSE,
            )

    def _start(
        self,
        bound: BoundQuery,
        views: SparkViews,
        types: SparkTypes,
        plan: Written | None,
        shards: int | None,
        idle: float | None,
    ) -> SparkQuery:
        """The query of a reading, which is the whole text or a SELECT in its FROM."""
        # Each stream once, in the order of the text: a checkpoint knows its sources by their position.
        streaming = self._are_streaming(bound.streams, views)
        # Fingerprints have the types of the SELECTs in FROM, too.
        host_types = {**types.known, **bound.host_types}
        spec = replace(self._spec(bound, views, plan, shards), computed=host_types)
        check_watermarks(bound.query, spec.watermarked, idle)
        name = f"braid_{uuid.uuid4().hex[:12]}"
        directory = self._directory / name
        control = Control(directory / "control")
        spark_query = SparkQuery(name, spec, control, self._adapt, idle)
        spark_query.streams = views.origins_of(bound.streams)
        spark_query.tables = tuple(sorted(views.tables))
        spark_query.inner = tuple(views.queries)
        spark_query.refreshed = tuple(self._dataframes[table] for table in sorted(self._refreshed & views.tables))
        if streaming:
            cluster.warn_of_idle_partitions(self.spark, spec.router.shards)
            joined = streaming_join(
                self.spark,
                name,
                spec,
                views.dataframes,
                control,
                directory=directory,
                cache_limit=self._cache_limit,
                passes_idle=idle is not None,
            )
        else:
            joined = static_join(spec, views.dataframes)
        results = distinct(projected(joined, spec), spec, name)
        spark_query.dataframe = ranked(grouped(results, spec, name), spec, name)
        self._queries[name] = spark_query
        if streaming:
            self._listener.queries[name] = spark_query
        return spark_query

    @property
    def streams(self) -> Mapping[str, Stream]:
        """The declared streams by name."""
        return MappingProxyType(self._declared)

    @property
    def queries(self) -> tuple[SparkQuery, ...]:
        """The queries of this session that the program still holds, or that have not ended."""
        return tuple(self._queries.values())

    def stop(self) -> None:
        """Stop the running queries of this session, and its Spark if the session has started it.

        The queries go on from their checkpoints when they are started again.
        """
        for running in self.spark.streams.active:
            if any(name in _plan_of(running) for name in self._queries):
                running.stop()
        if self._owns_spark:
            self.spark.stop()

    def __repr__(self) -> str:
        return f"<session with streams {', '.join(self._declared) or 'none yet'} and {len(self._queries)} queries>"

    def _repr_html_(self) -> str:
        return _session_html(self._declared.values(), self.queries)

    def _spec(self, bound: BoundQuery, views: SparkViews, plan: Written | None, shards: int | None) -> QuerySpec:
        query, streams = bound.query, bound.streams
        watermarks: dict[str, Watermark | None] = {}
        for stream in streams:
            kinds = {branch: watermark_of(dataframe) for branch, dataframe in views.frames_of(stream).items()}
            # If one branch of a stream has a watermark of Spark's, Spark tells how far the stream is.
            watermarks[stream.name] = strongest(kinds.values())
            watermarks |= kinds
        rates = {source.alias: views.rates[source.declared.name] for source in query.inputs}
        router = router_for(query, shards or cluster.cores(self.spark), rates)
        return QuerySpec(
            bound.text,
            streams,
            Plan.of(query, plan).written,
            router,
            event_time=event_time_name(query),
            labels=cluster.shard_labels(router.shards, cluster.partitions(self.spark)),
            partitions=cluster.partitions(self.spark),
            watermarked=frozenset(name for name, kind in watermarks.items() if kind is not None),
            derived=frozenset(name for name, kind in watermarks.items() if kind is Watermark.DERIVED),
            views=tuple(views.definitions),
        )

    def _are_streaming(self, streams: Sequence[Stream], views: SparkViews) -> bool:
        """Whether the streams of a query are streaming DataFrames; `StreamError` if only some of them are."""
        streaming = {
            name: dataframe.isStreaming for stream in streams for name, dataframe in views.frames_of(stream).items()
        }
        if len(set(streaming.values())) > 1:
            table = next(name for name, is_streaming in streaming.items() if not is_streaming)
            raise StreamError(
                f"'{table}' is a table and other streams of the query are not; declare it as one, "
                f"session.table('{table}', ..), and leave out its window"
            )
        return any(streaming.values())


def _session_html(streams: Iterable[Stream], queries: Iterable[SparkQuery]) -> str:
    """A session: its streams and its queries."""
    declared = [
        [stream.name, stream.time, duration_text(stream.lateness), ", ".join(stream.schema.names)] for stream in streams
    ]
    running = []
    for query in queries:
        total = (query.progress() or {"total": {}})["total"]
        running.append([query.name, ", ".join(query.streams), total.get("rows_in"), total.get("rows_out")])
    parts = [heading("streams"), table(["name", "event time", "lateness", "columns"], declared)]
    parts += [heading("queries"), table(["name", "streams", "rows in", "results"], running)]
    return "".join(parts)


def _plan_of(running: Any) -> str:
    """The logical plan of a running query as Spark prints it, with the names of its observations."""
    return str(running._jsq.streamingQuery().analyzedPlan().toString())


def make_cache_directory(cache: str | None) -> Path:
    """Make the directory of a session below `cache`; it is removed when this program ends."""
    # Absolute, because the workers that Java starts may have another current directory.
    root = Path(cache).absolute() if cache else fast_directory()
    remove_orphans(root)
    directory = session_directory(root)
    try:
        make_private(directory)
    except OSError as problem:
        raise BraidError(f"the cache {root} cannot be written ({problem.strerror}); give another cache=..") from problem
    atexit.register(_remove_directory, directory)
    return directory


def _remove_directory(directory: Path) -> None:
    """Remove the directory of a session, after the workers of a local Spark: a running task would make it again."""
    end_java()
    shutil.rmtree(directory, ignore_errors=True)
