"""Expressions over the columns of streams, as immutable trees.

An expression is a `Column`, a `Literal`, a `Call` of a named function (operators are functions too), a `Cast`, or a
`HostExpression`, which the engine cannot compute. Each keeps its `span` in the query text for error messages; two
expressions that differ only in it are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa

from braid.errors import ModelError, Span
from braid.model.checks import check, check_each, check_name

Value = bool | int | float | Decimal | str | bytes | date | datetime | timedelta | None


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a stream; `source` is the alias of the stream, None until binding finds it."""

    source: str | None
    name: str
    span: Span | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        check(self.source, str | None, "the stream of a column")
        check(self.name, str, "the name of a column")

    def __str__(self) -> str:
        return self.name if self.source is None else f"{self.source}.{self.name}"


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """A constant of a known type. Zero and minus zero are two constants: what is computed with them differs."""

    value: Value
    type: pa.DataType
    span: Span | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        check(self.value, Value, "a constant")
        check(self.type, pa.DataType, "the type of a constant")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literal):
            return NotImplemented
        return repr(self.value) == repr(other.value) and bool(self.type == other.type)

    def __hash__(self) -> int:
        return hash((repr(self.value), self.type))

    def __str__(self) -> str:
        if self.value is None:
            return "NULL"
        if isinstance(self.value, bool):
            return str(self.value).upper()
        if isinstance(self.value, str):
            return "'" + self.value.replace("'", "''") + "'"
        if isinstance(self.value, timedelta):
            return f"INTERVAL '{self.value}'"
        if isinstance(self.value, date):
            return f"'{self.value}'"
        return str(self.value)


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function or an operator."""

    function: str
    arguments: tuple[Expression, ...]
    span: Span | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_name(self.function, "the name of a function")
        check_each(self.arguments, Expression, f"the arguments of {self.function.upper()}")

    def __str__(self) -> str:
        arguments = [str(argument) for argument in self.arguments]
        if self.function in INFIX and len(arguments) == 2:
            return f"({arguments[0]} {INFIX[self.function]} {arguments[1]})"
        if self.function == "field":
            return f"{arguments[0]}.{arguments[1][1:-1]}"
        if self.function == "element":
            return f"{arguments[0]}[{arguments[1]}]"
        if self.function == "count" and not arguments:
            arguments = ["*"]
        if self.function.endswith(" distinct"):
            return f"{self.function.removesuffix(' distinct').upper()}(DISTINCT {arguments[0]})"
        return f"{self.function.upper()}({', '.join(arguments)})"


@dataclass(frozen=True, slots=True)
class Cast:
    """An expression converted to another type; a value that the type cannot hold becomes null."""

    operand: Expression
    type: pa.DataType
    span: Span | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        check(self.operand, Expression, "the operand of a cast")
        check(self.type, pa.DataType, "the type of a cast")

    def __str__(self) -> str:
        return f"CAST({self.operand} AS {self.type})"


@dataclass(frozen=True, slots=True)
class HostExpression:
    """An expression that the host computes, because the engine has no such function.

    `pieces` are the parts of its text, in the host's SQL, around its operands: one more than there are operands. `type`
    is None until binding has asked the host. An `aggregate` computes one value of many rows. `written` is the text to
    show, if it is another one.
    """

    pieces: tuple[str, ...]
    operands: tuple[Expression, ...]
    type: pa.DataType | None = None
    span: Span | None = field(default=None, compare=False, repr=False)
    aggregate: bool = False
    written: str = field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        check_each(self.pieces, str, "the text of an expression of the host")
        check_each(self.operands, Expression, "the operands of an expression of the host")
        check(self.type, pa.DataType | None, "the type of an expression of the host")
        if len(self.pieces) != len(self.operands) + 1:
            raise ModelError(f"{len(self.operands)} operands stand between {len(self.pieces)} pieces of text")

    def sql(self, name: Callable[[Expression], str]) -> str:
        """The text in the host's SQL, with a name for each operand."""
        after = (f"{name(operand)}{piece}" for operand, piece in zip(self.operands, self.pieces[1:], strict=True))
        return "".join((self.pieces[0], *after))

    def __str__(self) -> str:
        return self.written or self.sql(str)


Expression = Column | Literal | Call | Cast | HostExpression

INFIX = {
    "equal": "=",
    "not_equal": "<>",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "same": "<=>",
    "and": "AND",
    "or": "OR",
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "div": "DIV",
    "remainder": "%",
    "like": "LIKE",
}
"""The operators that are written between their two arguments, by function name."""


def children(expression: Expression) -> tuple[Expression, ...]:
    """The direct operands of an expression."""
    if isinstance(expression, Call):
        return expression.arguments
    if isinstance(expression, Cast):
        return (expression.operand,)
    return expression.operands if isinstance(expression, HostExpression) else ()


def columns_of(expression: Expression) -> Iterator[Column]:
    """Every column an expression reads, left to right; one that occurs twice is listed twice."""
    if isinstance(expression, Column):
        yield expression
    for child in children(expression):
        yield from columns_of(child)


def map_columns(expression: Expression, change: Callable[[Column], Column]) -> Expression:
    """The same expression with each of its columns replaced."""
    if isinstance(expression, Column):
        return change(expression)
    if isinstance(expression, Call):
        arguments = tuple(map_columns(argument, change) for argument in expression.arguments)
        return Call(expression.function, arguments, expression.span)
    if isinstance(expression, Cast):
        return Cast(map_columns(expression.operand, change), expression.type, expression.span)
    if isinstance(expression, HostExpression):
        operands = tuple(map_columns(operand, change) for operand in expression.operands)
        return replace(expression, operands=operands)
    return expression


def has_host_part(expression: Expression) -> bool:
    """Whether the host computes the expression, or a part of it, for each row; aggregates do not count."""
    if isinstance(expression, HostExpression):
        return not expression.aggregate
    return any(map(has_host_part, children(expression)))


def sources_of(expression: Expression) -> frozenset[str]:
    """The aliases of the streams whose columns an expression reads."""
    return frozenset(column.source for column in columns_of(expression) if column.source is not None)


def conjuncts(expression: Expression) -> Iterator[Expression]:
    """The conditions between the ANDs of an expression. TRUE, the condition of a JOIN without ON, is left out."""
    if isinstance(expression, Call) and expression.function == "and":
        for argument in expression.arguments:
            yield from conjuncts(argument)
    elif not (isinstance(expression, Literal) and expression.value is True):
        yield expression
