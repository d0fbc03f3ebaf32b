"""SELECT DISTINCT on Spark: Spark's own deduplication, by all columns and the event time of the results."""

from __future__ import annotations

from pyspark.sql import DataFrame

from braid.hosts.spark.driver.grouping import comparable, observed
from braid.hosts.spark.driver.names import named
from braid.runtime.query_spec import QuerySpec


def distinct(results: DataFrame, spec: QuerySpec, name: str) -> DataFrame:
    """The results of the query `name` without duplicates, if the query has DISTINCT.

    The event time is among the columns compared, so Spark forgets a result when the watermark has passed it.
    """
    if not spec.query.distinct:
        return results
    # Named by position, because two columns may have the same name.
    numbered = results.toDF(*(str(position) for position in range(len(results.columns))))
    columns = [comparable(named(field.name), field.dataType).alias(field.name) for field in numbered.schema]
    return observed(numbered.select(*columns).dropDuplicates().toDF(*results.columns), name)
