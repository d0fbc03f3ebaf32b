"""Expressions that Spark computes: as columns of a stream before its rows are packed, and from the results of a join.

They mean what they mean in Spark with ANSI mode off and in UTC, as the expressions of the engine do, whatever the
session has: Spark notes the mode and the zone in an expression when it analyses it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema

from braid.errors import StreamError
from braid.hosts.spark.driver.checks import arrow_type
from braid.hosts.spark.driver.failures import failure_text
from braid.hosts.spark.driver.names import named, quoted
from braid.model.expressions.aggregates import EVENT_TIME_OPERAND
from braid.model.expressions.expression import Column, Expression, HostExpression
from braid.model.expressions.types import TypeMismatch
from braid.model.projection import Projection
from braid.runtime.query_spec import QuerySpec

MEANING = {"spark.sql.ansi.enabled": "false", "spark.sql.session.timeZone": "UTC"}
"""Settings with which Spark's expressions mean what Braid's do: none fails, and times without a zone are in UTC."""

_COMPUTE_APART = "compute it before the query, as a column of the stream, or from the results of the query"


class SparkTypes:
    """Asks Spark for the types of expressions; `known` are all that it has given, by the text of the expression."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self.known: dict[str, pa.DataType] = {}

    def type_of(self, expression: HostExpression, types: Sequence[pa.DataType]) -> pa.DataType:
        text = expression.sql(str)
        if text not in self.known:
            self.known[text] = self._analyse(expression, types)
        return self.known[text]

    def _analyse(self, expression: HostExpression, types: Sequence[pa.DataType]) -> pa.DataType:
        operands = dict(zip(expression.operands, types, strict=True))
        names = _analysis_names(list(operands))
        schema = from_arrow_schema(pa.schema([(names[operand], type_) for operand, type_ in operands.items()]))
        try:
            rows = self._spark.createDataFrame([], schema)
            with with_our_meaning(self._spark), _without_log():
                analysed = rows.select(spark_column(expression, names.__getitem__).alias("value"))
            _check_is_a_value(analysed, expression)
            return arrow_type(analysed.schema["value"].dataType)
        except StreamError as problem:
            raise TypeMismatch(f"{expression} is {problem}", expression, "cast it to another type") from None
        except (PySparkException, Py4JError) as failure:
            raise _refusal(expression, failure) from None


@contextmanager
def with_our_meaning(spark: SparkSession) -> Iterator[None]:
    """Spark analyses expressions with `MEANING` here, which they keep."""
    before = {name: str(spark.conf.get(name)) for name in MEANING}
    try:
        for name, value in MEANING.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


@contextmanager
def _without_log() -> Iterator[None]:
    """PySpark logs an error that it raises; here it becomes a `QueryError`."""
    # By PySpark's own function: a logger of this name that Python makes could not log what PySpark logs.
    log = PySparkLogger.getLogger("SQLQueryContextLogger")
    disabled, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = disabled


def spark_column(expression: HostExpression, name: Callable[[Expression], str]) -> SparkColumn:
    """An expression as a column of Spark's; `name` gives the column that each operand is."""
    return F.expr(expression.sql(lambda operand: quoted(name(operand))))


def computed_column(expression: HostExpression) -> SparkColumn:
    """An expression over the columns of one stream."""
    return spark_column(expression, column_name)


def result_column(expression: HostExpression, event_time: str) -> SparkColumn:
    """An expression over the columns of results; `event_time` is the name of their event time."""

    def name(operand: Expression) -> str:
        return event_time if operand == EVENT_TIME_OPERAND else column_name(operand)

    return spark_column(expression, name)


def column_name(operand: Expression) -> str:
    assert isinstance(operand, Column)
    return operand.name


def projected(joined: DataFrame, spec: QuerySpec) -> DataFrame:
    """The results of a join, with the columns that Spark computes from them."""
    projection = spec.query.projection
    return joined if projection is None else project(joined, projection, [spec.event_time])


def project(results: DataFrame, projection: Projection, event_time: Sequence[str]) -> DataFrame:
    """The columns of a projection, and the event time, if there is one, of the results that meet its conditions."""
    time = event_time[0] if event_time else ""
    columns = []
    for output in projection.outputs:
        expression = projection.over_inputs(output.expression)
        if isinstance(expression, HostExpression):
            column = result_column(expression, time)
        else:
            column = named(column_name(expression))
        columns.append(column.alias(output.name))
    with with_our_meaning(results.sparkSession):
        for condition in map(projection.over_inputs, projection.conditions):
            assert isinstance(condition, HostExpression)
            results = results.filter(result_column(condition, time))
        return results.select(*columns, *map(named, event_time))


def _analysis_names(operands: Sequence[Expression]) -> dict[Expression, str]:
    """Names by which Spark's errors call the operands: as the query does, unless they differ only in case."""
    names = {operand: str(operand) for operand in operands}
    folded = [name.lower() for name in names.values()]
    return {
        operand: name if folded.count(name.lower()) == 1 else f"{name} ({position})"
        for position, (operand, name) in enumerate(names.items())
    }


def _check_is_a_value(analysed: DataFrame, expression: HostExpression) -> None:
    """Refuse what is no value of one row, and what depends on more than the row."""
    plan: Any = analysed._jdf.queryExecution().analyzed()
    is_aggregate = plan.nodeName() == "Aggregate"
    if is_aggregate and not expression.aggregate:
        hint = "aggregates stand in SELECT and HAVING, and not within other functions"
        raise TypeMismatch(f"{expression} is an aggregate, which cannot stand here", expression, hint)
    if not (is_aggregate or plan.nodeName() == "Project") or plan.child().children().size() > 0:
        problem = f"{expression} makes several rows of one, or reads other rows"
        raise TypeMismatch(problem, expression, _COMPUTE_APART)
    jvm: Any = analysed.sparkSession._jvm
    clock = jvm.org.apache.spark.sql.catalyst.trees.TreePattern.CURRENT_LIKE()
    value = plan.expressions().head()
    # COLLECT_LIST is deterministic as it is used here, which Spark cannot know.
    is_ordered = expression.aggregate and bool(expression.written)
    if not (value.deterministic() or is_ordered) or value.containsPattern(clock):
        problem = f"{expression} is not supported: its value does not depend on the input alone"
        raise TypeMismatch(problem, expression, "use the columns of the streams")


def _refusal(expression: HostExpression, failure: PySparkException | Py4JError) -> TypeMismatch:
    """The error for an expression that Spark does not understand."""
    condition = failure.getCondition() if isinstance(failure, PySparkException) else None
    parameters = (failure.getMessageParameters() if isinstance(failure, PySparkException) else None) or {}
    if condition == "UNRESOLVED_ROUTINE":
        name = parameters.get("routineName", str(expression)).replace("`", "")
        return TypeMismatch(
            f"there is no function '{name}', neither Braid's nor Spark's",
            expression,
            "check its name, or register it in this Spark: session.spark.udf.register(..)",
        )
    # Before the place in Spark's text and its plan, and after the name of the condition.
    reason = re.split(r"\s*SQLSTATE: |; line \d+|\n", failure_text(failure))[0]
    reason = re.sub(r"^\[[\w.]+\] ", "", reason).rstrip(". ")
    return TypeMismatch(f"Spark cannot compute {expression}: {reason}", expression, _COMPUTE_APART)
