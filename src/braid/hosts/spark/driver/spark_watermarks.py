"""Watermarks that a DataFrame brings with it: Spark allows no second one, so it keeps its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
"""Operators of Spark's that drop what is late, and may hold the rest back; so does a join of two streams."""

DELAY = "spark.watermarkDelayMs"
"""By this Spark knows a column that has a watermark."""


class Watermark(Enum):
    """What is between a watermark of Spark's and us: only what looks at rows one by one, or an operator with state."""

    DIRECT = auto()
    DERIVED = auto()


def watermark_of(dataframe: DataFrame) -> Watermark | None:
    """The watermark that Spark has of a stream, or of what it was made of; None if there is none."""
    if not dataframe.isStreaming:
        return None
    found = set(_watermarks(dataframe._jdf.queryExecution().analyzed(), {}))
    return Watermark.DERIVED if Watermark.DERIVED in found else next(iter(found), None)


def watermarked_columns(dataframe: DataFrame) -> list[str]:
    """The columns that watermarks of Spark's are of; it loses sight of them where Python makes the rows."""
    return [field.name for field in dataframe.schema if DELAY in field.metadata]


def _watermarks(plan: Any, defined: Mapping[int, Any]) -> Iterator[Watermark]:
    """Of each watermark in a plan of Spark's, what it is to whoever reads the plan's rows.

    `defined` are the plans that WITH has given a name to: whoever names one reads its rows.
    """
    match plan.nodeName():
        case "EventTimeWatermark":
            yield Watermark.DIRECT
            return
        case "WithCTE":
            named = {part.id(): part.child() for part in _listed(plan.cteDefs())}
            yield from _watermarks(plan.plan(), {**defined, **named})
            return
        case "CTERelationRef":
            yield from _watermarks(defined[plan.cteId()], defined)
            return
    streams = [child for child in _listed(plan.children()) if child.isStreaming()]
    is_stateful = plan.nodeName() in STATEFUL or (plan.nodeName() == "Join" and len(streams) > 1)
    for child in streams:
        yield from (Watermark.DERIVED if is_stateful else found for found in _watermarks(child, defined))


def _listed(sequence: Any) -> list[Any]:
    """A sequence of Scala's."""
    return [sequence.apply(place) for place in range(sequence.size())]
