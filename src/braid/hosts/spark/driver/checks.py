"""Checks that refuse a stream or a query that Spark cannot run, before anything starts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType, VariantType

from braid.errors import QueryError, StreamError
from braid.hosts.spark.driver.spark_watermarks import watermark_of, watermarked_columns
from braid.model.query import Query
from braid.model.stream import Stream

CONVERTIBLE = {
    "pandas": "make a Spark DataFrame of it: session.spark.createDataFrame(frame)",
    "pyarrow": "make a Spark DataFrame of it: session.spark.createDataFrame(table)",
    "polars": "make a Spark DataFrame of it: session.spark.createDataFrame(frame.to_arrow())",
}
"""How to make a Spark DataFrame of the frames of other libraries."""


def check_is_spark(name: str, dataframe: object, what: str = "stream") -> None:
    """Refuse what is not a Spark DataFrame, and say how to make one of it."""
    if isinstance(dataframe, DataFrame):
        return
    library = type(dataframe).__module__.partition(".")[0]
    kind = f"{library}'s {type(dataframe).__name__}" if library in CONVERTIBLE else type(dataframe).__name__
    remedy = CONVERTIBLE.get(library, "give a Spark DataFrame")
    raise StreamError(f"{what} '{name}' is {kind}; {remedy}")


def arrow_schema(name: str, schema: StructType, what: str = "stream") -> pa.Schema:
    """The Arrow schema of a stream or table; `StreamError` for a column that Braid cannot read or compare."""
    for field in schema:
        try:
            arrow_type(field.dataType)
        except StreamError as problem:
            raise StreamError(
                f"column '{field.name}' of {what} '{name}' is {problem}; leave the column out, or cast it"
            ) from problem
    return to_arrow_schema(schema, timezone="UTC")


def arrow_type(kind: DataType) -> pa.DataType:
    """The Arrow type of a type of Spark's; `StreamError` if Braid cannot read or compare its values."""
    if _holds(kind, _is_collated):
        raise StreamError(f"{kind.simpleString()}, and Braid compares texts byte by byte")
    try:
        return to_arrow_schema(StructType([StructField("value", kind)]), timezone="UTC").field(0).type
    except PySparkException as problem:
        raise StreamError(f"{kind.simpleString()}, which Spark cannot pass to Python") from problem


def check_names(stream: str, dataframe: DataFrame, columns: Sequence[str]) -> None:
    """Refuse a column that is read if another one differs only in case: by default, Spark takes them for one."""
    if dataframe.sparkSession.conf.get("spark.sql.caseSensitive") == "true":
        return
    for column in columns:
        same = [other for other in dataframe.columns if other.lower() == column.lower()]
        if len(same) > 1:
            raise StreamError(
                f"stream '{stream}' has columns {' and '.join(map(repr, same))}, which are one name to Spark; rename "
                "one of them, leave it out, or set spark.sql.caseSensitive"
            )


def check_time(stream: Stream, dataframe: DataFrame) -> None:
    """Refuse an event-time column other than the one with Spark's watermark.

    A row can be in time by the column with the watermark, and older than the watermark by the other column; Spark ends
    a query that emits a result older than its watermark.
    """
    # A DataFrame that is read from files may have marked columns, but no watermark: the files keep the mark.
    columns = watermarked_columns(dataframe) if watermark_of(dataframe) is not None else []
    if columns and stream.time not in columns:
        raise StreamError(
            f"stream '{stream.name}' has a watermark on '{columns[0]}', but its event time is '{stream.time}', "
            f"which may be older; give time={columns[0]!r} (for a window, window_time makes such a column), "
            "or remove the watermark"
        )


def check_watermarks(query: Query, watermarked: frozenset[str], idle: float | None) -> None:
    """Refuse streams with a watermark of Spark's where results have to wait for watermarks, or streams may be idle.

    Spark moves its watermarks on its own, also while the join operator does not run and cannot follow.
    """
    if not watermarked:
        return
    stream = f"stream '{min(watermarked)}' has a watermark of Spark's"
    remedy = (
        "declare it without a watermark (no withWatermark, and no operator that needs one), "
        "or write it to files and declare those"
    )
    if query.counts_rows or not query.ends_at_joins:
        raise StreamError(f"{stream}, and results of this query wait for Braid's own watermarks; {remedy}")
    if idle is not None:
        raise StreamError(f"{stream}, and idle_timeout cannot move such a watermark; {remedy}")


def check_result(schema: StructType) -> None:
    """Refuse VARIANT in results: PySpark cannot convert it back from a stateful operator, only from other functions."""
    for field in schema:
        if _holds(field.dataType, lambda kind: isinstance(kind, VariantType)):
            raise QueryError(
                f"column '{field.name}' of the result is {field.dataType.simpleString()}, which Spark cannot take "
                "back from a stateful operator; cast it to STRING before the join, or do not select it"
            )


def repeated_name(columns: Sequence[str]) -> str | None:
    """The first column whose name an earlier column of the result has too, ignoring case; None if there is none."""
    seen: set[str] = set()
    for column in columns:
        if column.lower() in seen:
            return column
        seen.add(column.lower())
    return None


def _is_collated(kind: DataType) -> bool:
    return isinstance(kind, StringType) and not kind.isUTF8BinaryCollation()


def _holds(kind: DataType, wanted: Callable[[DataType], bool]) -> bool:
    """Whether `wanted` is true of a type, or of a type nested in it."""
    match kind:
        case StructType():
            return any(_holds(field.dataType, wanted) for field in kind)
        case ArrayType():
            return _holds(kind.elementType, wanted)
        case MapType():
            return _holds(kind.keyType, wanted) or _holds(kind.valueType, wanted)
    return wanted(kind)
