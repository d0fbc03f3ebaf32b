"""How packers learn which keys are spread: a setting of the running query, which Spark hands to all tasks of a batch.

The table itself is in the checkpoint, in the offset of the control source, before any row is routed by it. When a query
starts, the listener reads it there and sets it before the first batch; see `Listener`.
"""

from __future__ import annotations

from braid.runtime.spread_table import SpreadTable

PREFIX = "spark.braid.spread."
"""The name of the setting; the name of the query follows."""


def spread_table(name: str) -> SpreadTable:
    """The table by which this task of the query `name` has to route; to be called in a worker."""
    from pyspark import TaskContext

    context = TaskContext.get()
    text = None if context is None else context.getLocalProperty(f"{PREFIX}{name}")
    return SpreadTable() if text is None else SpreadTable.from_json(text)
