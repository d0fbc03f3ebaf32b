"""The stateful operators that Spark runs: in every micro-batch they step each shard once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from braid.hosts.spark.shared.state_layout import KEY_DDL, STATE, VALUE_DDL

if TYPE_CHECKING:
    import pandas as pd

STATISTICS = "_statistics"
"""The column of a join's output for reports. Each shard adds one row per batch in which it is not null."""

SITE_OUTPUT_DDL = "outlet int, payload binary, report string"
"""The output of a site: a segment for an outlet of the site, or the report of a shard."""


class ShardOperator(StatefulProcessor):
    """Spark pickles this object for the workers, so it holds only the JSON of a spec, a path, a number and a name.

    To start a query, Spark loads this module in a Python process that only asks for the state's layout. So the engine
    is imported where it is used.
    """

    def __init__(self, spec: str, directory: str, cache_limit: int | None, name: str = "") -> None:
        self._spec = spec
        self._name = name
        self._directory = directory
        self._cache_limit = cache_limit

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getMapState(STATE, KEY_DDL, VALUE_DDL)

    def close(self) -> None:
        from braid.hosts.spark.worker.task_overhead import reduce_task_overhead

        reduce_task_overhead()


class QueryOperator(ShardOperator):
    """The join of a query on one site; its spec is a `QuerySpec`."""

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        from braid.hosts.spark.worker.task import Task

        task = Task(self._spec, self._directory, self._cache_limit, self._state, self._name)
        return task.take(int(key[0]), rows, timerValues.getCurrentWatermarkInMs())


class SiteOperator(ShardOperator):
    """All fragments of a site; its spec is a `SiteSpec`."""

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        from braid.hosts.spark.worker.site_task import SiteTask

        return SiteTask(self._spec, self._directory, self._cache_limit, self._state).take(int(key[0]), rows)
