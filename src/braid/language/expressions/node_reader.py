"""The helpers that every function that reads one kind of node needs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeAlias

from sqlglot import exp

from braid.errors import QueryError, Span
from braid.language.nodes import VALUE, span_of
from braid.language.refusal import Unsupported, written_name
from braid.model.expressions.expression import Call, Expression, has_host_part
from braid.model.expressions.functions import FUNCTIONS
from braid.model.expressions.types import TypeMismatch

Resolve: TypeAlias = Callable[[str, Span | None], str]
"""Gives the alias of the stream that a qualifier, at a span of the text, stands for."""

_SET_BY_SQLGLOT = frozenset({"typed", "safe", "coalesce", "ignore_nulls", "requires_string", "full_match"})
"""Arguments that sqlglot sets on nodes itself, whatever the text says."""


class NodeReader(ABC):
    """Reads nodes of one query text."""

    def __init__(self, text: str, resolve: Resolve) -> None:
        self.text = text
        self.resolve = resolve

    @abstractmethod
    def read(self, node: exp.Expr) -> Expression:
        """The expression of a node of any kind."""

    def value_of(self, node: exp.Expr) -> Expression | None:
        """The value that a node is for expressions of the host around it: an aggregate or a window bound of groups, or
        what a column of a SELECT in FROM stands for; None for any other node."""
        if not node.meta.get(VALUE):
            return None
        value = self.read(node.this)
        if has_host_part(value):
            raise self.error(node, "an expression of the host reads another one here", "write both in one SELECT")
        return value

    def call(self, node: exp.Expr, function: str, *operands: exp.Expr | None) -> Call:
        """A call of a function with the operands of a node."""
        nodes = [operand for operand in operands if operand is not None]
        if len(nodes) < len(operands):
            raise self.error(node, f"{self.name_of(node)} lacks an argument", "write it")
        arguments = tuple(self.read(operand) for operand in nodes)
        return self.checked(Call(function, arguments, span_of(node)))

    def checked(self, call: Call) -> Call:
        """The call itself, if it has as many arguments as its function takes."""
        try:
            FUNCTIONS[call.function].check_arity(call)
        except TypeMismatch as problem:
            raise QueryError(problem.message, self.text, call.span, problem.hint) from None
        return call

    def refuse_extras(self, node: exp.Expr, *known: str) -> None:
        """Refuse a node with arguments other than the known ones: nothing in the text may be ignored silently."""
        for key, value in node.args.items():
            if key not in known and key not in _SET_BY_SQLGLOT and value not in (None, False, []):
                problem = f"this form of {self.name_of(node)} is not supported"
                raise self.unsupported(node, problem, "the reference of the query language lists its arguments")

    def require_word(self, word: str, left: exp.Expr, right: exp.Expr) -> None:
        """Refuse two operands without the keyword that belongs between them: sqlglot does not insist on it."""
        first, last = span_of(left), span_of(right)
        if first and last and word not in self.text[first.end : last.start].upper():
            raise QueryError(f"{word} is missing here", self.text, first.union(last), f"write {word} between the two")

    def name_of(self, node: exp.Expr) -> str:
        """The name of a function as written, in capitals."""
        return written_name(node, self.text).upper()

    def written(self, node: exp.Expr) -> str:
        """The text that a node was read from."""
        span = span_of(node)
        return "" if span is None else self.text[span.start : span.end]

    def error(self, node: exp.Expr, problem: str, hint: str) -> QueryError:
        return QueryError(problem, self.text, span_of(node), hint)

    def unsupported(self, node: exp.Expr, problem: str, hint: str) -> Unsupported:
        """The error for what the engine does not have, though the host may."""
        return Unsupported(problem, self.text, span_of(node), hint)


ReadNode: TypeAlias = Callable[[NodeReader, exp.Expr], Expression]
"""Reads the nodes of one kind; the reader gives it the expressions of their operands."""


def arguments_of(node: exp.Expr, keys: tuple[str, ...]) -> list[exp.Expr]:
    """The operands that a node keeps under some keys, each a node, a list of nodes or None."""
    arguments: list[exp.Expr] = []
    for key in keys:
        value = node.args.get(key)
        if isinstance(value, list):
            arguments += value
        elif value is not None:
            arguments.append(value)
    return arguments
