"""What Spark cannot do with a stream or a query, refused before anything starts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType, VariantType

from braid.errors import QueryError, StreamError
from braid.hosts.spark.driver.spark_watermarks import watermark_of, watermarked_columns
from braid.model.query import Query
from braid.model.stream import Stream


def arrow_schema(stream: str, schema: StructType) -> pa.Schema:
    for field in schema:
        if _holds(field.dataType, _is_collated):
            raise StreamError(
                f"column '{field.name}' of stream '{stream}' is {field.dataType.simpleString()}, and texts are "
                "compared byte by byte here; leave the column out, or cast it to STRING"
            )
        try:
            to_arrow_schema(StructType([field]), timezone="UTC")
        except PySparkException as problem:
            raise StreamError(
                f"column '{field.name}' of stream '{stream}' is {field.dataType.simpleString()}, which Spark does not "
                "give to Python; leave the column out, or cast it"
            ) from problem
    return to_arrow_schema(schema, timezone="UTC")


def check_names(stream: str, dataframe: DataFrame, read: Sequence[str]) -> None:
    """Spark does not find a column if another has its name but for the case, unless it is told to mind that."""
    if dataframe.sparkSession.conf.get("spark.sql.caseSensitive") == "true":
        return
    for name in read:
        alike = [other for other in dataframe.columns if other.lower() == name.lower()]
        if len(alike) > 1:
            raise StreamError(
                f"stream '{stream}' has columns {' and '.join(map(repr, alike))}, which are one name to Spark; rename "
                "one of them, leave it out, or set spark.sql.caseSensitive"
            )


def check_time(stream: Stream, dataframe: DataFrame) -> None:
    """By any other column than the one with the watermark, rows in time for Spark may be older than it allows."""
    # Files remember which column had one when they were written.
    marked = watermarked_columns(dataframe) if watermark_of(dataframe) is not None else []
    if marked and stream.time not in marked:
        raise StreamError(
            f"stream '{stream.name}' has a watermark on '{marked[0]}' and is declared by '{stream.time}', "
            f"which may be behind that; give time={marked[0]!r} (of a window, window_time makes one), "
            "or take the watermark off"
        )


def check_watermarks(query: Query, watermarked: frozenset[str], idle: float | None) -> None:
    """Spark moves its watermarks on its own, also while the operator has nothing to do and hears nothing of it."""
    given = f"stream '{min(watermarked, default='')}' has a watermark of Spark's"
    instead = "declare it without (no withWatermark, nor what needs one), or write it to files and declare those"
    if watermarked and (query.counts_rows or query.exclusions):
        raise StreamError(f"{given}, and results of this query wait for ours; {instead}")
    if watermarked and idle is not None:
        raise StreamError(f"{given}, which only its rows move, not idle_timeout; {instead}")


def check_result(schema: StructType) -> None:
    """PySpark makes no VARIANT of what the operator gives back, as it does for functions without state."""
    for field in schema:
        if _holds(field.dataType, lambda part: isinstance(part, VariantType)):
            raise QueryError(
                f"column '{field.name}' of the result is {field.dataType.simpleString()}, which Spark does not take "
                "back from the operator of a stream; cast it to STRING before the join, or do not select it"
            )


def _is_collated(kind: DataType) -> bool:
    return isinstance(kind, StringType) and not kind.isUTF8BinaryCollation()


def _holds(kind: DataType, wanted: Callable[[DataType], bool]) -> bool:
    """Whether values of a type are, or hold, some of another."""
    match kind:
        case StructType():
            return any(_holds(field.dataType, wanted) for field in kind)
        case ArrayType():
            return _holds(kind.elementType, wanted)
        case MapType():
            return _holds(kind.keyType, wanted) or _holds(kind.valueType, wanted)
    return wanted(kind)
