"""Names of Spark's columns: any characters, and the same name twice."""

from __future__ import annotations

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructField, StructType


def by_position(schema: StructType) -> StructType:
    """The same columns named by their position: PySpark finds columns by name, and two may have the same one."""
    return StructType([StructField(str(position), field.dataType) for position, field in enumerate(schema)])


def named(name: str) -> SparkColumn:
    """The column of this name, whatever characters the name has."""
    return F.col(quoted(name))


def quoted(name: str) -> str:
    """A name in backticks, as Spark reads a name with any characters."""
    escaped = name.replace("`", "``")
    return f"`{escaped}`"
