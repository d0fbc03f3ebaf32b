"""Expressions that Spark computes: columns of a stream before its rows are packed, and columns of a join's results.

Like the expressions of the engine, they follow Spark with ANSI mode off and times in UTC, whatever the session has set:
Spark stores both settings in an expression when it analyses it.
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

BRAID_SEMANTICS = {"spark.sql.ansi.enabled": "false", "spark.sql.session.timeZone": "UTC"}
"""Settings under which Spark's expressions do what Braid's do: none fails, and times without a zone are in UTC."""

_COMPUTE_APART = "compute it before the query, as a column of the stream, or from the results of the query"


class SparkTypes:
    """Asks Spark for the types of expressions, of each only once."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._known: dict[tuple[str, tuple[pa.DataType, ...]], pa.DataType] = {}
        """By the text of the expression and the types of its operands: an alias may stand for several streams."""

    @property
    def known(self) -> dict[str, pa.DataType]:
        """The types so far, by the text of the expression."""
        return {text: type_ for (text, _), type_ in self._known.items()}

    def type_of(self, expression: HostExpression, types: Sequence[pa.DataType]) -> pa.DataType:
        key = expression.sql(str), tuple(types)
        if key not in self._known:
            self._known[key] = self._analyse(expression, types)
        return self._known[key]

    def _analyse(self, expression: HostExpression, types: Sequence[pa.DataType]) -> pa.DataType:
        operands = dict(zip(expression.operands, types, strict=True))
        names = _analysis_names(list(operands))
        schema = from_arrow_schema(pa.schema([(names[operand], type_) for operand, type_ in operands.items()]))
        try:
            rows = self._spark.createDataFrame([], schema)
            with braid_semantics(self._spark), _without_log():
                analysed = rows.select(spark_column(expression, names.__getitem__).alias("value"))
            _check_is_a_value(analysed, expression)
            return arrow_type(analysed.schema["value"].dataType)
        except StreamError as problem:
            raise TypeMismatch(f"{expression} is {problem}", expression, "cast it to another type") from None
        except (PySparkException, Py4JError) as failure:
            raise _refusal(expression, failure) from None


@contextmanager
def braid_semantics(spark: SparkSession) -> Iterator[None]:
    """Within this context Spark analyses expressions under `BRAID_SEMANTICS`. They keep these settings."""
    before = {name: str(spark.conf.get(name)) for name in BRAID_SEMANTICS}
    try:
        for name, value in BRAID_SEMANTICS.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


@contextmanager
def _without_log() -> Iterator[None]:
    """Keeps PySpark from logging the errors that it raises: they become a `QueryError`."""
    # PySpark's own function has to make the logger: one of Python's under this name could not log what PySpark logs.
    log = PySparkLogger.getLogger("SQLQueryContextLogger")
    disabled, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = disabled


def spark_column(expression: HostExpression, name: Callable[[Expression], str]) -> SparkColumn:
    """An expression as a Spark column; `name` returns the name of the column that holds an operand."""
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
    """The results that meet the conditions of a projection: its columns, and the event time.

    `event_time` has the name of the event time, or nothing if the results have none.
    """
    time = event_time[0] if event_time else ""
    columns = []
    for output in projection.outputs:
        expression = projection.over_inputs(output.expression)
        if isinstance(expression, HostExpression):
            column = result_column(expression, time)
        else:
            column = named(column_name(expression))
        columns.append(column.alias(output.name))
    with braid_semantics(results.sparkSession):
        for condition in map(projection.over_inputs, projection.conditions):
            assert isinstance(condition, HostExpression)
            results = results.filter(result_column(condition, time))
        return results.select(*columns, *map(named, event_time))


def _analysis_names(operands: Sequence[Expression]) -> dict[Expression, str]:
    """Names for the operands in Spark's errors: those of the query, with a number where they differ only in case."""
    names = {operand: str(operand) for operand in operands}
    in_lower_case = [name.lower() for name in names.values()]
    return {
        operand: name if in_lower_case.count(name.lower()) == 1 else f"{name} ({position})"
        for position, (operand, name) in enumerate(names.items())
    }


def _check_is_a_value(analysed: DataFrame, expression: HostExpression) -> None:
    """Refuse an expression that is not one value for each row, or that depends on more than its operands."""
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
    # Spark takes COLLECT_LIST for not deterministic. The aggregates that Braid rewrites sort what it collects.
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
    # Only the sentence between the name of the error condition, and the position and the plan that follow it.
    reason = re.split(r"\s*SQLSTATE: |; line \d+|\n", failure_text(failure))[0]
    reason = re.sub(r"^\[[\w.]+\] ", "", reason).rstrip(". ")
    return TypeMismatch(f"Spark cannot compute {expression}: {reason}", expression, _COMPUTE_APART)
