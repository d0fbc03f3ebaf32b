"""The stateful operator: in every micro-batch, each shard takes its segments and gives its results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from braid.hosts.spark.shared.state_layout import KEY_DDL, STATE, VALUE_DDL

if TYPE_CHECKING:
    import pandas as pd

STATISTICS = "_statistics"
"""A column of the operator's output that is null but in the one row with which a shard reports on a batch."""


class JoinOperator(StatefulProcessor):
    """Spark ships it to the workers as text (a query spec), a directory and a size; everything else is built there.

    A query starts with a Python that asks for nothing but the state's layout; the engine is loaded by those who work.
    """

    def __init__(self, spec: str, directory: str, cache_limit: int | None) -> None:
        self._spec = spec
        self._directory = directory
        self._cache_limit = cache_limit

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getMapState(STATE, KEY_DDL, VALUE_DDL)

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        from braid.hosts.spark.worker.task import Task

        task = Task(self._spec, self._directory, self._cache_limit, self._state)
        return task.take(int(key[0]), rows, timerValues.getCurrentWatermarkInMs())

    def close(self) -> None:
        from braid.hosts.spark.worker.upkeep import lighten

        lighten()
