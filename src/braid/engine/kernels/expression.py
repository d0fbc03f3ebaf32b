"""Compiles an expression to Arrow compute kernels, once; the result runs on any number of batches.

The meaning is Spark's with ANSI mode off: no expression raises an error on any row, so the result of a query does not
depend on which rows a plan evaluates it on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

import pyarrow as pa

from braid.engine.kernels import KERNELS
from braid.engine.kernels.casts import Conversion
from braid.engine.kernels.values import Datum, one_row
from braid.model.expressions.expression import Call, Cast, Column, Expression, HostExpression, Literal, columns_of
from braid.model.expressions.typing import type_of, type_of_call

Columns = Mapping[Column, pa.Array]
ColumnType = Callable[[Column], pa.DataType]


class Compiled:
    """A compiled expression. `columns` are the columns it reads, each once; `type` is the type of its values."""

    def __init__(self, type_: pa.DataType, columns: tuple[Column, ...], evaluate: Callable[[Columns], Datum]) -> None:
        self.type = type_
        self.columns = columns
        self._evaluate = evaluate

    def __call__(self, columns: Columns, length: int) -> pa.Array:
        """The values for `length` rows, given at least the columns it reads, each of this length."""
        value = self._evaluate(columns)
        if isinstance(value, pa.Scalar):
            return pa.repeat(value, length) if value.is_valid else pa.nulls(length, self.type)
        return value


def compile_expression(expression: Expression, column_type: ColumnType) -> Compiled:
    """Compile an expression; `column_type` returns the type of a column.

    The joins of a plan, of the plans after it and of other engines share what is compiled.
    """
    columns = tuple(dict.fromkeys(columns_of(expression)))
    return _compiled(expression, columns, tuple(map(column_type, columns)))


@lru_cache(maxsize=4096)
def _compiled(expression: Expression, columns: tuple[Column, ...], types: tuple[pa.DataType, ...]) -> Compiled:
    node = _compile(expression, dict(zip(columns, types, strict=True)).__getitem__)
    return Compiled(node.type, columns, node.evaluate)


class _Node:
    """A compiled part of an expression; `constant` is its value if it reads no column."""

    def __init__(
        self, type_: pa.DataType, evaluate: Callable[[Columns], Datum], constant: pa.Scalar | None = None
    ) -> None:
        self.type = type_
        self.evaluate = evaluate
        self.constant = constant


def _constant(scalar: pa.Scalar) -> _Node:
    return _Node(scalar.type, lambda columns: scalar, scalar)


def _compile(expression: Expression, column_type: ColumnType) -> _Node:
    if isinstance(expression, Column):
        return _Node(column_type(expression), lambda columns: columns[expression])
    if isinstance(expression, Literal):
        return _constant(pa.scalar(expression.value, expression.type))
    if isinstance(expression, Cast):
        return _compile_cast(expression, column_type)
    if isinstance(expression, HostExpression):
        raise AssertionError(f"{expression} is left to the host")
    return _compile_call(expression, column_type)


def _compile_cast(cast: Cast, column_type: ColumnType) -> _Node:
    operand = _compile(cast.operand, column_type)
    target = type_of(cast, column_type)
    convert = Conversion(operand.type, target)
    if operand.constant is not None:
        return _constant(convert(operand.constant))
    return _Node(target, lambda columns: convert(operand.evaluate(columns)))


def _compile_call(call: Call, column_type: ColumnType) -> _Node:
    arguments = [_compile(argument, column_type) for argument in call.arguments]
    types = tuple(argument.type for argument in arguments)
    result = type_of_call(call, types)
    kernel = KERNELS[call.function](call, types, result)
    if all(argument.constant is not None for argument in arguments):
        # Compute the constant on one row. One array is enough: kernels take the number of rows from any of them.
        first, *others = (argument.constant for argument in arguments)
        value = kernel(one_row(first), *others)
        return _constant(value if isinstance(value, pa.Scalar) else value[0])
    return _Node(result, lambda columns: kernel(*(argument.evaluate(columns) for argument in arguments)))
