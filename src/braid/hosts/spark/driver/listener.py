"""Hands the reports of join operators to their queries, and removes the cache of a query that has ended."""

from __future__ import annotations

import atexit
import json
import logging
import re
import shutil
from collections import deque
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from threading import Condition
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary, ref

from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

from braid.hosts.spark.driver.checkpoint_files import last_control_offsets
from braid.hosts.spark.driver.control import checkpoint_of
from braid.hosts.spark.driver.grouping import GROUPS
from braid.hosts.spark.driver.query import SparkQuery
from braid.hosts.spark.shared.cache_space import CACHE
from braid.hosts.spark.shared.spread_property import PREFIX
from braid.runtime.fingerprint import goes_on
from braid.runtime.spread_table import SpreadTable

logger = logging.getLogger(__name__)

NAME = r"\bbraid_[0-9a-f]{12}\b"
"""The names of queries, which are also the names of their observations."""

MOST_ENDED = 100
"""The most ended queries that are kept alive in case they are started again."""


class Listener(StreamingQueryListener):
    """Hands the reports of join operators to their queries, which it knows by the name of their observation.

    A program may drop a `SparkQuery` after starting its DataFrame and still expects the query to adapt, also when the
    DataFrame is started again. So the listener holds queries until they have run, and the last ended ones longer.

    When a query has ended, its cache is removed: the directory with its name in one of the sessions' `directories`.

    The listener reads Spark's events in the JVM, with a handful of calls. PySpark would copy every event to Python
    before it calls a listener, which takes 0.3 s of two busy cores per micro-batch: one call for each value, and some
    fifty more at the end of each collection, where an exception is raised and inspected.

    Observations of other names are not read: `Row.json` in the JVM fails for some types that they may have.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = ref(spark)  # The listeners of all Sparks are known by their Spark, weakly.
        self.queries: dict[str, SparkQuery] = {}
        """Queries that run, or have not been started yet."""
        self._ended: WeakValueDictionary[str, SparkQuery] = WeakValueDictionary()
        self._last_ended: deque[SparkQuery] = deque(maxlen=MOST_ENDED)
        # datasketches reports sketches that are still alive when Python ends as leaks.
        atexit.register(self._release_queries)
        self.directories: set[Path] = set()
        self._running: dict[str, set[str]] = {}
        """The names of the queries that have reported, by run, in the order in which the runs started."""
        self._run_ended = Condition()

    def _release_queries(self) -> None:
        self.queries.clear()
        self._last_ended.clear()

    def wait_for_end(self, run: str, seconds: float) -> bool:
        """Wait until a run has ended and its queries have all its reports; False if it takes longer than `seconds`."""
        with self._run_ended:
            return self._run_ended.wait_for(lambda: run not in self._running, seconds)

    @property
    def _jlistener(self) -> Any:
        if not hasattr(self, "_wrapped"):
            self._wrapped = SparkContext._jvm.PythonStreamingQueryListenerWrapper(self)  # type: ignore[union-attr]
        return self._wrapped

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        """Note the run, and let it route by the table in its checkpoint. The first batch begins after this."""
        with self._run_ended:
            self._running[event.runId().toString()] = set()
        spark = self._spark()
        started = None if spark is None else spark._jsparkSession.streams().get(event.id())
        if spark is None or started is None:  # It has ended already.
            return
        stream = started.streamingQuery()
        names = sorted(set(re.findall(NAME, stream.analyzedPlan().toString())))
        offsets = last_control_offsets(spark, stream.resolvedCheckpointRoot()) if names else []
        for name in names:
            query = self._query(name)
            if query is not None:
                query.start_run(_table_of(query, offsets), partial(_set_table, stream, name))

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        progress = event.progress()
        observed = progress.observedMetrics()
        run = progress.runId().toString()
        names = observed.keySet().toString()
        for name in re.findall(NAME, names):
            followed = self._is_followed(run, name)
            query = self._query(name)
            if query is None or not (followed or query.passes_idle):
                continue
            reports = json.loads(observed[name].json())["reports"]
            started = _seconds(progress.timestamp())
            if followed:
                # Groups may come in a micro-batch without rows, of which no shard reports.
                groups = json.loads(observed[f"{name}{GROUPS}"].json())["rows"] if f"{name}{GROUPS}" in names else None
                query.receive(progress.batchId(), reports, started, groups, partial(_checkpoint, progress))
            if reports and query.passes_idle:
                query.pass_idle(run, reports[0], _checkpoint(progress), started)

    def _query(self, name: str) -> SparkQuery | None:
        """A query by its name. One that had ended and reports again is running again."""
        ended = self._ended.pop(name, None)
        if ended is not None:
            self.queries[name] = ended
        return self.queries.get(name)

    def _is_followed(self, run: str, name: str) -> bool:
        """Whether this run is the newest of its query.

        Only one run at a time is followed. Two interleaved runs would look like one query whose streams jump back and
        forth.
        """
        runs = [other for other, names in list(self._running.items()) if name in names or other == run]
        names = self._running.get(run, set())
        if len(runs) > 1 and run == runs[-1] and name not in names:
            logger.warning(
                "query %s runs more than once; only its newest run is watched, and decides on the plan", name
            )
        names.add(name)
        return not runs or run == runs[-1]

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        run = event.runId().toString()
        other_runs = [names for other, names in list(self._running.items()) if other != run]
        still_running: set[str] = set().union(*other_runs)
        for name in self._running.get(run, ()):
            query = self._query(name)
            if query is not None:
                query.end_run(run)
            if name not in still_running:
                self._end(name)
        with self._run_ended:
            self._running.pop(run, None)
            self._run_ended.notify_all()

    def _end(self, name: str) -> None:
        """Note that the last run of a query has ended, and remove its cache."""
        if name in self.queries:
            self._ended[name] = self.queries.pop(name)
            self._last_ended.append(self._ended[name])
        for directory in tuple(self.directories):  # Another thread may be opening a session.
            shutil.rmtree(directory / name / CACHE, ignore_errors=True)

    class Java:
        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)


_listeners: WeakKeyDictionary[SparkSession, Listener] = WeakKeyDictionary()


def listener_of(spark: SparkSession) -> Listener:
    """The listener of a Spark, shared by all sessions: with each further listener Spark would wait for Python again."""
    if spark not in _listeners:
        _listeners[spark] = Listener(spark)
        spark.streams.addListener(_listeners[spark])
    return _listeners[spark]


def _table_of(query: SparkQuery, offsets: Sequence[Mapping[str, Any]]) -> SpreadTable:
    """The table of spread keys in the offsets of a checkpoint for this query; an empty one if there is none."""
    for offset in offsets:
        if "spread" in offset and goes_on(offset["query"], query.fingerprint):
            return SpreadTable.from_json(offset["spread"])
    return SpreadTable()


def _set_table(stream: Any, name: str, table: SpreadTable) -> None:
    """Let a running query route by a table, from its next batch on."""
    stream.sparkSessionForStream().conf().set(f"{PREFIX}{name}", table.to_json())


def _checkpoint(progress: Any) -> str:
    return checkpoint_of(source.endOffset() or "" for source in progress.sources())


def _seconds(timestamp: str) -> float:
    """A timestamp as Spark writes it, in seconds since 1970."""
    return datetime.fromisoformat(timestamp).timestamp()
