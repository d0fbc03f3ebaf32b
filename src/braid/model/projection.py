"""SELECT lists of which the host computes some columns, from the results of the join.

The join produces what the list needs: the operands of the host's expressions, and all other expressions of the list.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from braid.errors import ModelError
from braid.model.checks import check_each
from braid.model.expressions.aggregates import EVENT_TIME
from braid.model.expressions.expression import Column, Expression, HostExpression, Literal
from braid.model.output import Output


@dataclass(frozen=True)
class Projection:
    """The columns of a result, some of them a `HostExpression`."""

    outputs: tuple[Output, ...]

    def __post_init__(self) -> None:
        check_each(self.outputs, Output, "the columns of a projection")
        if not any(isinstance(output.expression, HostExpression) for output in self.outputs):
            raise ModelError("a projection has at least one column that the host computes")

    @cached_property
    def inputs(self) -> tuple[Output, ...]:
        """The columns that the join must produce, each once."""
        return tuple(Output(f"column {position}", expression) for position, expression in enumerate(self._needed))

    @cached_property
    def _needed(self) -> list[Expression]:
        needed: dict[Expression, None] = {}
        for output in self.outputs:
            if isinstance(output.expression, HostExpression):
                needed.update(dict.fromkeys(operand for operand in output.expression.operands if operand != EVENT_TIME))
            else:
                needed[output.expression] = None
        # An expression without columns reads nothing, but a result needs a column.
        return list(needed) or [Literal(True, pa.bool_())]

    def over_inputs(self, expression: Expression) -> Expression:
        """An expression of the outputs, rewritten to read the columns that the join produces, and its event time."""
        if isinstance(expression, HostExpression):
            return replace(expression, operands=tuple(map(self._input, expression.operands)))
        return self._input(expression)

    def _input(self, expression: Expression) -> Expression:
        if expression == EVENT_TIME:
            return expression
        return Column(None, f"column {self._needed.index(expression)}")
