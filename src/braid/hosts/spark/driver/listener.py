"""What operators report reaches the queries they belong to, and what a query has cached goes when it ends."""

from __future__ import annotations

import atexit
import json
import logging
import re
import shutil
from collections import deque
from datetime import datetime
from pathlib import Path
from threading import Condition
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

from braid.hosts.spark.driver.control import checkpoint_of
from braid.hosts.spark.driver.query import SparkQuery
from braid.hosts.spark.shared.cache_space import CACHE

logger = logging.getLogger(__name__)

NAME = r"\bbraid_[0-9a-f]{12}\b"
"""What queries call their observations."""


MOST_ENDED = 100
"""So many queries that have run are kept, though nobody else may hold on to them."""


class Listener(StreamingQueryListener):
    """Hands on what operators report, by the name of their observation, to the queries they belong to.

    Queries are kept until they have run, and some of them longer: who starts one and lets go of it expects it to adapt
    all the same, also when it is started again.

    When a query has ended, what it has cached goes: a directory of its name in one of the sessions' `directories`.

    It takes Spark's events as they are in the JVM, which PySpark hides: PySpark copies an event to Python before it
    calls a listener, call by call, and turns the end of every collection in it into an exception that it looks into
    with some fifty more. That takes 0.3 s of two busy cores for every micro-batch; here it is a handful of calls.
    Observations of others are left alone: a row of Spark's has no text for every type they may have.
    """

    def __init__(self) -> None:
        self.queries: dict[str, SparkQuery] = {}
        self._ended: WeakValueDictionary[str, SparkQuery] = WeakValueDictionary()
        self._lately: deque[SparkQuery] = deque(maxlen=MOST_ENDED)
        atexit.register(self._let_go)  # Sketches of theirs are counted when Python ends.
        self.directories: set[Path] = set()
        self._running: dict[str, set[str]] = {}
        self._news = Condition()

    def _let_go(self) -> None:
        self.queries.clear()
        self._lately.clear()

    def wait_for_end(self, run: str, seconds: float) -> bool:
        """Until a run of a query has ended and all that it reported has been handed on; whether it has."""
        with self._news:
            return self._news.wait_for(lambda: run not in self._running, seconds)

    @property
    def _jlistener(self) -> Any:
        if not hasattr(self, "_wrapped"):
            self._wrapped = SparkContext._jvm.PythonStreamingQueryListenerWrapper(self)  # type: ignore[union-attr]
        return self._wrapped

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        """Spark calls this before the call that starts the query returns."""
        with self._news:
            self._running[event.runId().toString()] = set()

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        progress = event.progress()
        observed = progress.observedMetrics()
        run = progress.runId().toString()
        for name in re.findall(NAME, observed.keySet().toString()):
            followed, query = self._is_followed(run, name), self._query(name)
            if query is None or not (followed or query.passes_idle):
                continue
            reports = json.loads(observed[name].json())["reports"]
            started = _seconds(progress.timestamp())
            if followed:
                query.receive(progress.batchId(), reports, started)
            if reports and query.passes_idle:
                query.pass_idle(run, reports[0], _checkpoint(progress), started)

    def _query(self, name: str) -> SparkQuery | None:
        """A query by its name; one that has ended runs again if somebody asks."""
        ended = self._ended.pop(name, None)
        if ended is not None:
            self.queries[name] = ended
        return self.queries.get(name)

    def _is_followed(self, run: str, name: str) -> bool:
        """Whether this run is the newest of its query: two at once would be taken for one that goes back and forth."""
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
        others = {name for other, names in list(self._running.items()) if other != run for name in names}
        for name in self._running.get(run, ()):
            query = self._query(name)
            if query is not None:
                query.end_run(run)
            if name not in others:
                self._end(name)
        with self._news:
            self._running.pop(run, None)
            self._news.notify_all()

    def _end(self, name: str) -> None:
        """The last run of a query has ended."""
        if name in self.queries:
            self._ended[name] = self.queries.pop(name)
            self._lately.append(self._ended[name])
        for directory in self.directories:
            shutil.rmtree(directory / name / CACHE, ignore_errors=True)

    class Java:
        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)


_listeners: WeakKeyDictionary[SparkSession, Listener] = WeakKeyDictionary()


def listener_of(spark: SparkSession) -> Listener:
    """One for all sessions on a Spark: each listener of ours makes Spark wait for Python once more."""
    if spark not in _listeners:
        _listeners[spark] = Listener()
        spark.streams.addListener(_listeners[spark])
    return _listeners[spark]


def _checkpoint(progress: Any) -> str:
    return checkpoint_of(source.endOffset() or "" for source in progress.sources())


def _seconds(timestamp: str) -> float:
    """When a micro-batch started, as Spark writes it."""
    return datetime.fromisoformat(timestamp).timestamp()
