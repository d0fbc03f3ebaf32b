"""SELECT lists of which the host computes some columns, from the results of the join or from its groups.

The join, or the groups, give what the list needs: the operands of the host's expressions, and all other expressions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from braid.errors import ModelError
from braid.model.checks import check_each
from braid.model.expressions.aggregates import EVENT_TIME_OPERAND
from braid.model.expressions.expression import Column, Expression, HostExpression, Literal
from braid.model.output import Output


@dataclass(frozen=True)
class Projection:
    """The columns of a result, some of them a `HostExpression`.

    `given` are expressions of the host that are computed already: the keys of groups. Only results that meet the
    `conditions`, which the host computes too, are kept.
    """

    outputs: tuple[Output, ...]
    given: tuple[Expression, ...] = ()
    conditions: tuple[HostExpression, ...] = ()

    def __post_init__(self) -> None:
        check_each(self.outputs, Output, "the columns of a projection")
        check_each(self.given, Expression, "the given expressions of a projection")
        check_each(self.conditions, HostExpression, "the conditions of a projection")
        if not self.computed:
            raise ModelError("a projection has at least one column that the host computes")

    @staticmethod
    def of(
        outputs: tuple[Output, ...],
        given: tuple[Expression, ...] = (),
        conditions: tuple[HostExpression, ...] = (),
    ) -> Projection | None:
        """The projection to these columns; None if the host computes none of them, and no condition."""
        return Projection(outputs, given, conditions) if conditions or _computed(outputs, given) else None

    @property
    def computed(self) -> tuple[HostExpression, ...]:
        """The expressions that the host computes here."""
        return (*_computed(self.outputs, self.given), *self.conditions)

    @cached_property
    def inputs(self) -> tuple[Output, ...]:
        """The columns that the join, or the groups, must give, each once."""
        return tuple(Output(f"column {position}", expression) for position, expression in enumerate(self._needed))

    @cached_property
    def _needed(self) -> list[Expression]:
        needed: dict[Expression, None] = {}
        for computed in (*(output.expression for output in self.outputs), *self.conditions):
            operands = self._operands(computed)
            read = (computed,) if operands is None else operands
            needed.update(dict.fromkeys(expression for expression in read if expression != EVENT_TIME_OPERAND))
        # An expression without columns reads nothing, but a result needs a column.
        return list(needed) or [Literal(True, pa.bool_())]

    def _operands(self, expression: Expression) -> tuple[Expression, ...] | None:
        """The operands of an expression that the host computes here; None for any other expression."""
        if isinstance(expression, HostExpression) and expression in self.computed:
            return expression.operands
        return None

    def over_inputs(self, expression: Expression) -> Expression:
        """An expression of the outputs, rewritten to read the inputs, and the event time of results."""
        operands = self._operands(expression)
        if isinstance(expression, HostExpression) and operands is not None:
            return replace(expression, operands=tuple(map(self._input, operands)))
        return self._input(expression)

    def _input(self, expression: Expression) -> Expression:
        if expression == EVENT_TIME_OPERAND:
            return expression
        return Column(None, f"column {self._needed.index(expression)}")


def _computed(outputs: Iterable[Output], given: Collection[Expression]) -> tuple[HostExpression, ...]:
    """The expressions of the host among outputs that are neither aggregates nor given."""
    expressions = (output.expression for output in outputs)
    hosted = (expression for expression in expressions if isinstance(expression, HostExpression))
    return tuple(expression for expression in hosted if not expression.aggregate and expression not in given)
