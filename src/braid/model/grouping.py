"""GROUP BY: keys and aggregates that are computed over the results of a join.

A grouped query consists of an ungrouped query, whose columns are the group keys and the arguments of the aggregates,
and a `Grouping` of its results. So the join is independent of grouping, and each host groups with its own means: Arrow
or Spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from braid.errors import ModelError
from braid.model.checks import check, check_each, check_name
from braid.model.duration import duration_text
from braid.model.expressions.aggregates import (
    DISTINCT,
    EVENT_TIME_OPERAND,
    WINDOW_END,
    WINDOW_START,
    Aggregate,
    aggregates_of,
    arguments_of,
    is_aggregate,
    type_of_grouped_call,
)
from braid.model.expressions.expression import Call, Cast, Column, Expression, HostExpression, Literal, children
from braid.model.expressions.types import INSTANT, plain
from braid.model.output import Output
from braid.model.predicate import Predicate
from braid.model.projection import Projection

START, END = "window start", "window end"
"""The columns that hold the bounds of a group's time window."""


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """Windows of event time to group results by: one window of `length` starts at each multiple of `slide`.

    Both are in microseconds.
    """

    length: int
    slide: int

    def __post_init__(self) -> None:
        check(self.length, int, "the length of a time window")
        check(self.slide, int, "the slide of a time window")
        if not 0 < self.slide <= self.length:
            raise ModelError(
                f"the slide of a time window must be from 1 to its length, {self.length} microseconds, not {self.slide}"
            )

    def __str__(self) -> str:
        lengths = [self.length] if self.slide == self.length else [self.length, self.slide]
        shown = ", ".join(f"'{duration_text(length)}'" for length in lengths)
        return f"WINDOW(event_time, {shown})"


@dataclass(frozen=True, slots=True)
class SessionWindow:
    """Sessions of each group: a result is in the session of one less than `gap` microseconds before it."""

    gap: int

    def __post_init__(self) -> None:
        check(self.gap, int, "the gap of sessions")
        if self.gap < 1:
            raise ModelError(f"the gap of sessions is at least 1 microsecond, not {self.gap}")

    def __str__(self) -> str:
        return f"SESSION_WINDOW(event_time, '{duration_text(self.gap)}')"


@dataclass(frozen=True, slots=True)
class Measure:
    """An aggregate over a column of the join's result; without a column, over its rows: COUNT(*).

    If it is `distinct`, it takes each different value of the column once. An aggregate that the host computes is an
    `expression` over columns of the join's result.
    """

    name: str
    function: str
    column: str | None
    type: pa.DataType
    expression: HostExpression | None = None
    distinct: bool = False

    def __post_init__(self) -> None:
        check_name(self.name, "the name of a measure")
        check_name(self.function, "the aggregate of a measure")
        check(self.column, str | None, "the column of a measure")
        check(self.type, pa.DataType, "the type of a measure")
        check(self.expression, HostExpression | None, "the expression of a measure")


@dataclass(frozen=True)
class Grouping:
    """The columns and the condition of groups, as written in SELECT, GROUP BY and HAVING.

    `outputs` and `having` read keys, aggregates and the bounds of the time window. If there is a `projection` (columns
    that the host computes from these), the outputs are its inputs.
    """

    outputs: tuple[Output, ...]
    keys: tuple[Expression, ...] = ()
    window: TimeWindow | SessionWindow | None = None
    having: Expression | None = None
    projection: Projection | None = None

    def __post_init__(self) -> None:
        check_each(self.outputs, Output, "the columns of a grouping")
        check_each(self.keys, Expression, "the keys of a grouping")
        check(self.window, TimeWindow | SessionWindow | None, "the time window of a grouping")
        check(self.having, Expression | None, "the HAVING condition of a grouping")
        check(self.projection, Projection | None, "the projection of a grouping")
        if not self.outputs:
            raise ModelError("a grouping selects at least one column")

    @cached_property
    def inputs(self) -> tuple[Output, ...]:
        """The columns that the join must produce: the keys, then the arguments of the aggregates."""
        keys = [Output(f"key {position}", key) for position, key in enumerate(self.keys)]
        values = [Output(f"value {position}", value) for position, value in enumerate(self._values)]
        if not keys and not values:
            # COUNT(*) over all results reads no column, but a result needs one.
            return (Output("row", Literal(True, pa.bool_())),)
        return (*keys, *values)

    @property
    def selected(self) -> tuple[Output, ...]:
        """The columns of the result, as written in SELECT."""
        return self.outputs if self.projection is None else self.projection.outputs

    @property
    def key_names(self) -> list[str]:
        return [f"key {position}" for position in range(len(self.keys))]

    @cached_property
    def _values(self) -> list[Expression]:
        """The arguments of the aggregates, each once."""
        return list(dict.fromkeys(value for aggregate in self._aggregates for value in arguments_of(aggregate)))

    @cached_property
    def _aggregates(self) -> list[Aggregate]:
        """The aggregates of SELECT and HAVING, each once."""
        expressions = [output.expression for output in self.outputs]
        if self.having is not None:
            expressions.append(self.having)
        return list(dict.fromkeys(aggregate for expression in expressions for aggregate in aggregates_of(expression)))

    def measures(self, inputs: pa.Schema) -> list[Measure]:
        """The aggregates to compute, given the schema of the join's results."""
        return [
            self._measure(f"measure {position}", aggregate, inputs)
            for position, aggregate in enumerate(self._aggregates)
        ]

    def _measure(self, name: str, aggregate: Aggregate, inputs: pa.Schema) -> Measure:
        if isinstance(aggregate, HostExpression):
            operands = [
                operand if operand == EVENT_TIME_OPERAND else self._value(operand) for operand in aggregate.operands
            ]
            return Measure(name, "host", None, aggregate.type, replace(aggregate, operands=tuple(operands)))
        column = self._value(aggregate.arguments[0]).name if aggregate.arguments else None
        types = () if column is None else (inputs.field(column).type,)
        function = aggregate.function.removesuffix(DISTINCT)
        type_ = type_of_grouped_call(aggregate, types)
        return Measure(name, function, column, type_, distinct=function != aggregate.function)

    def _value(self, argument: Expression) -> Column:
        return Column(None, f"value {self._values.index(argument)}")

    def group_types(self, inputs: pa.Schema) -> dict[str, pa.DataType]:
        """The types of the columns that groups have before SELECT: window bounds, keys and measures."""
        bounds = {} if self.window is None else {START: INSTANT, END: INSTANT}
        keys = {name: plain(inputs.field(name).type) for name in self.key_names}
        return bounds | keys | {measure.name: measure.type for measure in self.measures(inputs)}

    def over_groups(self, expression: Expression) -> Expression:
        """An expression of SELECT or HAVING, rewritten to read the columns that groups have."""
        if expression in self.keys:
            return Column(None, f"key {self.keys.index(expression)}")
        if expression in (WINDOW_START, WINDOW_END):
            return Column(None, START if expression == WINDOW_START else END)
        if isinstance(expression, Aggregate) and is_aggregate(expression):
            return Column(None, f"measure {self._aggregates.index(expression)}")
        if isinstance(expression, Call):
            return replace(expression, arguments=tuple(self.over_groups(argument) for argument in expression.arguments))
        if isinstance(expression, Cast):
            return replace(expression, operand=self.over_groups(expression.operand))
        return expression

    def ungrouped(self, expression: Expression) -> Iterator[Column]:
        """The columns in an expression that are neither in a key nor in an aggregate."""
        if expression in self.keys or is_aggregate(expression):
            return
        if isinstance(expression, Column):
            yield expression
        for child in children(expression):
            yield from self.ungrouped(child)

    def __str__(self) -> str:
        keys = [str(key) for key in self.keys]
        if self.window is not None:
            keys.append(str(self.window))
        groups = f"by {', '.join(keys)}" if keys else "all results"
        having = "" if self.having is None else f" having {Predicate(self.having)}"
        return f"group {groups}{having}"
