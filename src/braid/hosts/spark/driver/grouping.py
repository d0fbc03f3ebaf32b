"""GROUP BY on Spark: Spark's own aggregation over the results of the join."""

from __future__ import annotations

from contextlib import nullcontext

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import DataType, DoubleType, FloatType, LongType

from braid.engine.output.groups import Selection
from braid.errors import QueryError
from braid.hosts.spark.driver.expressions import braid_semantics, project, result_column
from braid.hosts.spark.driver.names import by_position, named
from braid.hosts.spark.worker.selector import Selector, group_times
from braid.model.expressions.expression import Column
from braid.model.grouping import END, START, Grouping, Measure, SessionWindow
from braid.runtime.query_spec import QuerySpec

GROUPS = "_groups"
"""The end of the name of the observation that counts the rows of a query with GROUP BY, DISTINCT or ROW_NUMBER; the
query's name comes before it."""


def grouped(joined: DataFrame, spec: QuerySpec, name: str) -> DataFrame:
    """The result of the query `name`: the results of its join, grouped if it has GROUP BY or aggregates."""
    grouping = spec.query.grouping
    if grouping is None:
        return joined
    groups = _groups(joined, spec, grouping)
    if grouping.projection is not None:
        groups = project(groups, grouping.projection, group_times(spec))
    return groups if spec.query.ranking is not None else observed(groups, name)


def observed(result: DataFrame, name: str) -> DataFrame:
    """The result of the query `name`; the listener learns how many rows a micro-batch of it has."""
    return result.observe(f"{name}{GROUPS}", F.count(F.lit(1)).alias("rows")) if result.isStreaming else result


def _groups(joined: DataFrame, spec: QuerySpec, grouping: Grouping) -> DataFrame:
    if joined.isStreaming and grouping.window is None:
        raise QueryError(
            "groups of a stream are complete only when their time is over, and this query groups by no window",
            spec.text,
            hint="add one: GROUP BY WINDOW(event_time, '1 minute'), ..",
        )
    inputs = spec.projected_schema
    measures = grouping.measures(inputs)
    has_host_part = any(measure.expression is not None for measure in measures)
    with braid_semantics(joined.sparkSession) if has_host_part else nullcontext():
        aggregates = [_aggregate(joined, measure, spec.event_time).alias(measure.name) for measure in measures]
        aggregates = aggregates or [F.count(F.lit(1)).alias("rows")]
        groups = joined.groupBy(*_keys(grouping, spec.event_time)).agg(*aggregates)
    groups = groups.select(*_bounds(grouping, spec.event_time), *(named(name) for name in groups.columns))
    selected = [grouping.over_groups(output.expression) for output in grouping.outputs]
    if grouping.having is None and all(isinstance(expression, Column) for expression in selected):
        # Spark can select plain columns itself, without a round trip through Python.
        outputs = [
            named(str(expression)).alias(output.name)
            for expression, output in zip(selected, grouping.outputs, strict=True)
        ]
        return groups.select(*outputs, *map(named, group_times(spec)))
    schema = from_arrow_schema(Selection(grouping, inputs, group_times(spec)).schema)
    return groups.mapInArrow(Selector(spec.to_json()), by_position(schema)).toDF(*schema.names)


def _keys(grouping: Grouping, event_time: str) -> list[SparkColumn]:
    keys = [named(name) for name in grouping.key_names]
    if isinstance(grouping.window, SessionWindow):
        # Spark lets a row at the end of a session into it, unless the watermark, whole milliseconds, is there already.
        # With ends one microsecond before, a row on a full millisecond is never at one.
        keys.append(F.session_window(named(event_time), f"{grouping.window.gap - 1} microseconds"))
    elif grouping.window is not None:
        length, slide = (f"{size} microseconds" for size in (grouping.window.length, grouping.window.slide))
        keys.append(F.window(named(event_time), length, slide))
    return keys


def _bounds(grouping: Grouping, event_time: str) -> list[SparkColumn]:
    """The bounds of a group's window, and the event time that Spark gives the group."""
    if grouping.window is None:
        return []
    is_session = isinstance(grouping.window, SessionWindow)
    name = "session_window" if is_session else "window"
    end = F.col(f"{name}.end") + F.expr("INTERVAL 1 MICROSECOND") if is_session else F.col(f"{name}.end")
    bounds = [F.col(f"{name}.start").alias(START), end.alias(END)]
    return [*bounds, F.window_time(F.col(name)).alias(event_time)]


def _aggregate(joined: DataFrame, measure: Measure, event_time: str) -> SparkColumn:
    """An aggregate that gives null instead of failing on overflow, whether Spark's ANSI mode is on or off."""
    if measure.expression is not None:
        return result_column(measure.expression, event_time)
    if measure.column is None:
        return F.count(F.lit(1))
    column = named(measure.column)
    if measure.distinct:
        return _distinct_aggregate(column, joined.schema[measure.column].dataType, measure)
    if measure.function == "sum" and pa.types.is_floating(measure.type):
        return F.sum(column.cast("double"))
    if measure.function == "sum" and joined.schema[measure.column].dataType == LongType():
        return F.sum(column.cast("decimal(20, 0)")).try_cast("bigint")
    if measure.function == "avg":
        return F.avg(column.cast("double"))
    return {"count": F.count, "sum": F.try_sum, "min": F.min, "max": F.max}[measure.function](column)


def _distinct_aggregate(column: SparkColumn, kind: DataType, measure: Measure) -> SparkColumn:
    """An aggregate of each different value, once. Spark has none over streams, but it collects sets of values."""
    values = F.collect_set(comparable(column, kind))
    if measure.function == "count":
        return F.size(values).cast("bigint")
    # Sorted, because the sum of floating-point numbers depends on their order.
    ordered = F.array_sort(values)
    if measure.function == "avg" or pa.types.is_floating(measure.type):
        total = F.aggregate(ordered, F.lit(0.0), lambda total, value: total + value.cast("double"))
        total = total / F.size(values) if measure.function == "avg" else total
    else:
        wide = "decimal(38, 0)" if pa.types.is_integer(measure.type) else f"decimal(38, {measure.type.scale})"
        exact = F.aggregate(ordered, F.lit(0).cast(wide), lambda total, value: (total + value).try_cast(wide))
        total = exact.try_cast("bigint" if pa.types.is_integer(measure.type) else _decimal(measure.type))
    return F.when(F.size(values) > 0, total)


def _decimal(kind: pa.Decimal128Type) -> str:
    return f"decimal({kind.precision}, {kind.scale})"


def comparable(column: SparkColumn, kind: DataType) -> SparkColumn:
    """A column with one NaN and one zero: where Spark compares bytes."""
    if not isinstance(kind, FloatType | DoubleType):
        return column
    zero = F.lit(0.0).cast(kind)
    return F.when(F.isnan(column), F.lit(float("nan")).cast(kind)).otherwise(column + zero)
