"""Watermarks that a DataFrame already has. Spark allows no second one above it, so such a stream keeps its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum, auto
from typing import Any

from pyspark.sql import DataFrame

STATEFUL = frozenset(
    {
        *("Aggregate", "Deduplicate", "DeduplicateWithinWatermark", "Distinct"),
        *("TransformWithState", "TransformWithStateInPySpark"),
        *("FlatMapGroupsWithState", "FlatMapGroupsInPandasWithState"),
    }
)
"""Spark's operators that drop late rows and may hold others back. A join of two streams is one more."""

DELAY = "spark.watermarkDelayMs"
"""The metadata key by which Spark marks a column with a watermark."""


class Watermark(Enum):
    """Whether there is a stateful operator of Spark's between its watermark and the join (DERIVED) or not (DIRECT)."""

    DIRECT = auto()
    DERIVED = auto()


def watermark_of(dataframe: DataFrame) -> Watermark | None:
    """The kind of watermark that Spark has for a DataFrame, or for one it was made from; None if there is none."""
    if not dataframe.isStreaming:
        return None
    kinds = set(_watermarks(dataframe._jdf.queryExecution().analyzed(), {}))
    if Watermark.DERIVED in kinds:
        return Watermark.DERIVED
    return Watermark.DIRECT if kinds else None


def strongest(kinds: Iterable[Watermark | None]) -> Watermark | None:
    """The kind of watermark of rows that come from DataFrames with watermarks of these kinds."""
    known = [kind for kind in kinds if kind is not None]
    return max(known, key=lambda kind: kind.value, default=None)


def watermarked_columns(dataframe: DataFrame) -> list[str]:
    """The columns that Spark has marked with a watermark; rows that Python functions make lose the mark."""
    return [field.name for field in dataframe.schema if DELAY in field.metadata]


def _watermarks(plan: Any, defined: Mapping[int, Any]) -> Iterator[Watermark]:
    """The kind of each watermark in a logical plan of Spark's, as an operator that reads the plan's rows sees it.

    `defined` are the plans that WITH clauses define, by their id.
    """
    match plan.nodeName():
        case "EventTimeWatermark":
            yield Watermark.DIRECT
            return
        case "WithCTE":
            definitions = {definition.id(): definition.child() for definition in _listed(plan.cteDefs())}
            yield from _watermarks(plan.plan(), {**defined, **definitions})
            return
        case "CTERelationRef":
            yield from _watermarks(defined[plan.cteId()], defined)
            return
    streams = [child for child in _listed(plan.children()) if child.isStreaming()]
    is_stateful = plan.nodeName() in STATEFUL or (plan.nodeName() == "Join" and len(streams) > 1)
    for child in streams:
        yield from (Watermark.DERIVED if is_stateful else kind for kind in _watermarks(child, defined))


def _listed(sequence: Any) -> list[Any]:
    """The elements of a Scala sequence."""
    return [sequence.apply(index) for index in range(sequence.size())]
