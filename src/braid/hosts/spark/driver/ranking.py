"""ROW_NUMBER on Spark: an aggregation that keeps the best results of each partition, and no more.

`max_by(row, order, n)` holds n rows of a partition in its state, whatever their number, and gives them in order.
"""

from __future__ import annotations

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from braid.hosts.spark.driver.expressions import braid_semantics
from braid.hosts.spark.driver.grouping import observed
from braid.hosts.spark.driver.names import named
from braid.hosts.spark.driver.spark_watermarks import DELAY
from braid.model.expressions.aggregates import WINDOW_END, WINDOW_START
from braid.model.expressions.expression import Expression
from braid.model.grouping import SessionWindow, TimeWindow
from braid.model.ranking import RANK, Order, Ranking
from braid.runtime.query_spec import QuerySpec

_WINDOW, _RANK, _ROW = "window", "rank", "row"


def ranked(results: DataFrame, spec: QuerySpec, name: str) -> DataFrame:
    """The result of the query `name`: of its results, or its groups, those that its ranking keeps."""
    ranking = spec.query.ranking
    if ranking is None:
        return results
    with braid_semantics(results.sparkSession):
        return observed(_Ranks(ranking, spec).of(results), name)


class _Ranks:
    def __init__(self, ranking: Ranking, spec: QuerySpec) -> None:
        self._ranking = ranking
        self._event_time = spec.event_time
        grouping = spec.query.grouping
        window = None if grouping is None else grouping.window
        assert not isinstance(window, SessionWindow), "sessions are not ranked"
        self._grouped = window

    def of(self, results: DataFrame) -> DataFrame:
        ranking = self._ranking
        kinds = {field.name: field.dataType for field in results.schema}
        if self._grouped is not None:
            # Python made these rows, and Spark has lost sight of which column has the watermark.
            columns = [named(column) for column in results.columns if column != self._event_time]
            results = results.select(*columns, named(self._event_time).alias(self._event_time, metadata={DELAY: 0}))
        results = results.withColumn(_WINDOW, self._window())
        if ranking.start is not None:
            results = results.filter(self._input(ranking.start).cast("timestamp") == F.col(f"{_WINDOW}.start"))
        ties_descend = ranking.order[-1].descending
        sort_keys = [key for item in ranking.order for key in self._sort_keys(item, kinds, descending=ties_descend)]
        row = F.struct(*(named(name) for name in kinds if name != self._event_time))
        best = (F.max_by if ties_descend else F.min_by)(row, F.struct(*sort_keys), ranking.last)
        keys = [self._input(key).alias(f"key {position}") for position, key in enumerate(ranking.keys)]
        groups = results.groupBy(F.col(_WINDOW), *keys).agg(best.alias("best"))
        ranks = groups.select(F.col(_WINDOW), F.posexplode("best").alias(_RANK, _ROW))
        ranks = ranks.filter(F.col(_RANK) >= ranking.first - 1)
        for condition in ranking.conditions:
            ranks = ranks.filter(self._ranked(condition))
        time = F.window_time(F.col(_WINDOW)).alias(self._event_time)
        return ranks.select(*(self._ranked(output.expression).alias(output.name) for output in ranking.selected), time)

    def _window(self) -> SparkColumn:
        """The window that a result is ranked in.

        The event time of a group is the last moment of its window. No two windows end within one slide, so the end of
        this window is that of the group's.
        """
        window = self._ranking.window
        if window is not None:
            return F.window(named(self._event_time), *_lengths(window))
        assert self._grouped is not None
        slide = f"{self._grouped.slide} microseconds"
        offset = f"{self._grouped.length % self._grouped.slide} microseconds"
        return F.window(named(self._event_time), slide, slide, offset)

    def _sort_keys(self, item: Order, kinds: dict[str, T.DataType], *, descending: bool) -> list[SparkColumn]:
        kind = kinds[self._ranking.input_name(item.expression)]
        keys = _sort_keys(item, self._input(item.expression), kind, descending=descending)
        return [key.alias(f"{item.expression} {position}") for position, key in enumerate(keys)]

    def _input(self, expression: Expression) -> SparkColumn:
        return named(self._ranking.input_name(expression))

    def _ranked(self, expression: Expression) -> SparkColumn:
        """An expression of the SELECT list, or a condition, over the ranked rows."""
        if expression == RANK:
            return F.col(_RANK) + F.lit(1)
        if self._ranking.window is not None and expression in (WINDOW_START, WINDOW_END):
            return F.col(f"{_WINDOW}.{'start' if expression == WINDOW_START else 'end'}")
        return F.col(_ROW).getField(self._ranking.input_name(expression))


def _lengths(window: TimeWindow) -> tuple[str, str]:
    return f"{window.length} microseconds", f"{window.slide} microseconds"


def _sort_keys(item: Order, value: SparkColumn, kind: T.DataType, *, descending: bool) -> list[SparkColumn]:
    """What sorts as an item of ORDER BY, if all is sorted in one direction, with nulls as the least values."""
    nulls = [value.isNull()] if item.nulls_first == descending else []
    return [*nulls, value] if item.descending == descending else [*nulls, *_reversed(value, kind)]


def _reversed(value: SparkColumn, kind: T.DataType) -> list[SparkColumn]:
    """What sorts in the opposite direction; null stays null."""
    match kind:
        case T.BooleanType():
            return [~value]
        case T.DateType():
            return [F.bitwise_not(F.unix_date(value))]
        case T.TimestampType() | T.TimestampNTZType():
            return [F.bitwise_not(F.unix_micros(value.cast("timestamp")))]
        case T.FloatType() | T.DoubleType():
            # NaN is the largest number, also when it is negated.
            return [~F.isnan(value), F.when(~F.isnan(value), -value)]
        case T.StringType() | T.BinaryType():
            # The end of a value comes before all that go on: in the opposite direction, after them.
            return [F.concat(F.translate(F.hex(value), "0123456789ABCDEF", "FEDCBA9876543210"), F.lit("G"))]
        case T.IntegralType():
            return [F.bitwise_not(value)]
        case _:
            return [-value]
