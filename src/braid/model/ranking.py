"""ROW_NUMBER: the best results of each partition, within windows of event time.

A ranked query consists of a query without ranks, whose columns are all that ranking reads, and a `Ranking` of its
results. A window of event time is complete when the watermark has passed its end; then its ranks are final.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from braid.errors import ModelError
from braid.model.checks import check, check_each
from braid.model.expressions.aggregates import WINDOW_END, WINDOW_START
from braid.model.expressions.expression import Call, Expression
from braid.model.grouping import TimeWindow
from braid.model.output import Output, Star

RANK = Call("row_number", ())
"""The number of a result within its partition, from 1."""

HIGHEST_RANK = 100_000
"""The most results of a partition that can be kept: Spark's MAX_BY keeps no more."""


@dataclass(frozen=True, slots=True)
class Order:
    """An item of ORDER BY."""

    expression: Expression
    descending: bool = False
    nulls_first: bool = True

    def __post_init__(self) -> None:
        check(self.expression, Expression, "an item of ORDER BY")

    def __str__(self) -> str:
        nulls = "" if self.nulls_first != self.descending else f" NULLS {'FIRST' if self.nulls_first else 'LAST'}"
        return f"{self.expression}{' DESC' if self.descending else ''}{nulls}"


@dataclass(frozen=True)
class Ranking:
    """Keeps the results whose rank is from `first` to `last`, and that then meet the conditions.

    `outputs` are the columns of the result, among them `RANK`. `keys` and `window` are those of PARTITION BY: a result
    is ranked in each of the windows of event time that it is in, or, if there is a `start`, only in the one that begins
    then. There is no `window` if the query groups by one: then its bounds are among the keys.

    After binding, `order` decides all ties between results that differ.
    """

    outputs: tuple[Output | Star, ...]
    keys: tuple[Expression, ...]
    order: tuple[Order, ...]
    window: TimeWindow | None
    first: int
    last: int
    start: Expression | None = None
    conditions: tuple[Expression, ...] = ()

    def __post_init__(self) -> None:
        check_each(self.outputs, Output | Star, "the columns of a ranking")
        check_each(self.keys, Expression, "the keys of a ranking")
        check_each(self.order, Order, "the order of a ranking")
        check(self.window, TimeWindow | None, "the time window of a ranking")
        check_each(self.conditions, Expression, "the conditions of a ranking")
        if not self.order:
            raise ModelError("ranks need an order")
        if not 1 <= self.first <= self.last <= HIGHEST_RANK:
            raise ModelError(f"ranks from {self.first} to {self.last} are none")

    @cached_property
    def inputs(self) -> tuple[Output | Star, ...]:
        """The columns that the query must give, each once. Before binding there may be stars."""
        stars = (output for output in self.outputs if isinstance(output, Star))
        return (*stars, *(Output(f"column {position}", expression) for position, expression in enumerate(self._read)))

    @property
    def bound_inputs(self) -> tuple[Output, ...]:
        """The inputs after binding."""
        return tuple(output for output in self.inputs if isinstance(output, Output))

    @cached_property
    def _read(self) -> list[Expression]:
        return list(dict.fromkeys(expression for expression in self._expressions() if not self._is_added(expression)))

    def _expressions(self) -> Iterator[Expression]:
        yield from (output.expression for output in self.outputs if isinstance(output, Output))
        yield from self.keys
        yield from (item.expression for item in self.order)
        yield from () if self.start is None else (self.start,)
        yield from self.conditions

    def _is_added(self, expression: Expression) -> bool:
        """Whether ranking itself gives a value: the rank, and the bounds of the windows that it puts results into."""
        return expression == RANK or (self.window is not None and expression in (WINDOW_START, WINDOW_END))

    def input_name(self, expression: Expression) -> str:
        """The name of the column that has the values of an expression."""
        return f"column {self._read.index(expression)}"

    @property
    def selected(self) -> tuple[Output, ...]:
        return tuple(output for output in self.outputs if isinstance(output, Output))

    def __str__(self) -> str:
        keys = [*map(str, self.keys), *(() if self.window is None else (str(self.window),))]
        ranks = f"the first {self.last}" if self.first == 1 else f"ranks {self.first} to {self.last}"
        order = ", ".join(map(str, self.order))
        return f"keep {ranks} of each {', '.join(keys)} by {order}"
