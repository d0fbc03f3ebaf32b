"""The type of an expression. The functions of the language are in the table `FUNCTIONS`.

The kernels of the same names are in `braid.engine.kernels`; a test checks that both have the same functions.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from braid.model.expressions.expression import Call, Cast, Column, Expression, HostExpression, Literal
from braid.model.expressions.functions import FUNCTIONS
from braid.model.expressions.types import TypeMismatch, comparison_type, kind, plain

__all__ = ["FUNCTIONS", "TypeMismatch", "can_cast", "comparison_type", "type_of"]

ColumnType = Callable[[Column], pa.DataType]

_CASTS = {
    "null": "boolean integer decimal float string binary date timestamp duration time",
    "boolean": "boolean integer decimal float string",
    "integer": "boolean integer decimal float string timestamp",
    "decimal": "boolean integer decimal float string timestamp",
    "float": "boolean integer decimal float string timestamp",
    "string": "boolean integer decimal float string binary date timestamp",
    "binary": "string binary",
    "date": "string date timestamp",
    "timestamp": "integer decimal float string date timestamp",
    "duration": "duration",
    "time": "time",
}
"""The kinds of types that each kind can be cast to."""


def type_of(expression: Expression, column_type: ColumnType) -> pa.DataType:
    """The type of an expression, given the types of its columns; `TypeMismatch` if it has none."""
    if isinstance(expression, Column):
        return column_type(expression)
    if isinstance(expression, Literal):
        return expression.type
    if isinstance(expression, Cast):
        return _type_of_cast(expression, type_of(expression.operand, column_type))
    if isinstance(expression, HostExpression):
        if expression.type is None:
            raise TypeMismatch(f"the type of {expression} is not known before the host is asked", expression)
        return expression.type
    return type_of_call(expression, tuple(type_of(argument, column_type) for argument in expression.arguments))


def type_of_call(call: Call, types: tuple[pa.DataType, ...]) -> pa.DataType:
    """The type of a call whose arguments have these types."""
    signature = FUNCTIONS.get(call.function)
    if signature is None:
        raise TypeMismatch(f"there is no function '{call.function}'", call)
    signature.check_arity(call)
    try:
        return signature.rule(call, types)
    except TypeMismatch as problem:
        if problem.expression is None:
            problem.expression = call
        raise


def can_cast(source: pa.DataType, target: pa.DataType) -> bool:
    return target in (source, plain(source)) or kind(target) in _CASTS.get(kind(source), "").split()


def _type_of_cast(cast: Cast, operand: pa.DataType) -> pa.DataType:
    if not can_cast(operand, cast.type):
        raise TypeMismatch(
            f"{operand} cannot be cast to {cast.type}", cast, "convert it to a column of that type before the query"
        )
    return cast.type if cast.type == operand else plain(cast.type)
