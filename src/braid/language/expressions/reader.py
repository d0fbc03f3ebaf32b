"""`ExpressionReader`: reads a node of any kind. Nodes that the language does not have are refused by name."""

from __future__ import annotations

from sqlglot import exp

from braid.language.expressions.casts import CASTS
from braid.language.expressions.conditions import CONDITIONS, refuse_bare_tests
from braid.language.expressions.elements import ELEMENTS
from braid.language.expressions.functions import FUNCTIONS
from braid.language.expressions.hosted import host_expression
from braid.language.expressions.node_reader import NodeReader, ReadNode, Resolve, arguments_of
from braid.language.expressions.time_functions import TIME_FUNCTIONS
from braid.language.expressions.values import VALUES
from braid.language.names import (
    CALLED,
    COMPARISONS,
    FUNCTION_NAMES,
    FUNCTION_NODES,
    LEAST_ARGUMENTS,
    MOST_ARGUMENTS,
    OPERATORS,
)
from braid.language.nodes import CALL, span_of
from braid.language.refusal import Unsupported, unknown_function, unsupported_expression
from braid.model.expressions.expression import Call, Expression, HostExpression, children, has_host_part

DEEPEST = 100
"""The deepest nesting of expressions, so that walking them does not exhaust the stack."""

_SPECIAL: dict[type[exp.Expr], ReadNode] = {
    **VALUES,
    **ELEMENTS,
    **CASTS,
    **CONDITIONS,
    **FUNCTIONS,
    **TIME_FUNCTIONS,
}
"""The nodes with a function of their own to read them."""


class ExpressionReader(NodeReader):
    """Reads the expressions of one query text. With `hosted`, a host computes what the engine cannot."""

    def __init__(self, text: str, resolve: Resolve, *, hosted: bool = False) -> None:
        super().__init__(text, resolve)
        self.hosted = hosted
        self._depth = 0

    def read(self, node: exp.Expr) -> Expression:
        self._depth += 1
        try:
            if self._depth > DEEPEST:
                raise self.error(node, f"expressions are nested more than {DEEPEST} deep", "simplify it")
            return self._read_or_leave(node)
        finally:
            self._depth -= 1

    def read_result(self, node: exp.Expr) -> Expression:
        """An expression of results: if the host computes any part of it, the host computes all of it."""
        expression = self.read(node)
        return host_expression(self, node) if has_host_part(expression) else expression

    def _read_or_leave(self, node: exp.Expr) -> Expression:
        """The expression of a node; what the engine cannot compute is left to the host, if there is one."""
        try:
            expression = self._read_node(node)
        except Unsupported:
            if not self.hosted:
                raise
            return host_expression(self, node)
        # A constant of the host reads no stream, so it becomes part of the expression that it stands in.
        return host_expression(self, node) if _has_host_constant(expression) else expression

    def _read_node(self, node: exp.Expr) -> Expression:
        kind = type(node)
        foreign_name = self._foreign_name(node)
        if foreign_name is not None and (kind in _SPECIAL or kind in OPERATORS or kind in FUNCTION_NODES):
            raise unknown_function(foreign_name, self.text, span_of(node), list(FUNCTION_NAMES))
        self._refuse_number_of_arguments(node)
        if kind in _SPECIAL:
            return _SPECIAL[kind](self, node)
        if kind in OPERATORS:
            self.refuse_extras(node, "this", "expression")
            if kind in COMPARISONS:
                refuse_bare_tests(self, node)
            return self.call(node, OPERATORS[kind], node.this, node.args["expression"])
        if kind in FUNCTION_NODES:
            function, keys = FUNCTION_NODES[kind]
            self.refuse_extras(node, *keys)
            return self.call(node, function, *arguments_of(node, keys))
        raise unsupported_expression(node, self.text, list(FUNCTION_NAMES))

    def _foreign_name(self, node: exp.Expr) -> str | None:
        """The name of a call that sqlglot reads as one of Braid's functions, though Braid does not know the name."""
        call = node.meta.get(CALL)
        if call is None or isinstance(node, exp.Anonymous) or call.name.lower() in CALLED:
            return None
        return str(call.name)

    def _refuse_number_of_arguments(self, node: exp.Expr) -> None:
        """Check the number of arguments in the text: those that sqlglot ignores are not in the tree."""
        call = node.meta.get(CALL)
        if call is None:
            return
        name = call.name.lower()
        least = LEAST_ARGUMENTS.get(name, 0)
        most = MOST_ARGUMENTS.get(name, call.arguments)
        if least <= call.arguments <= most:
            return
        if most == 1:
            expected = "1 argument"
        elif least == most:
            expected = f"{most} arguments"
        else:
            expected = f"at most {most} arguments"
        problem = f"{call.name.upper()} takes {expected}, not {call.arguments}"
        raise self.unsupported(node, problem, "the reference of the query language lists its arguments")


def _has_host_constant(expression: Expression) -> bool:
    """Whether a direct operand is an expression of the host without columns; AND, OR and NOT may have one."""
    if isinstance(expression, Call) and expression.function in ("and", "or", "not"):
        return False
    hosted = [operand for operand in children(expression) if isinstance(operand, HostExpression)]
    return any(not operand.operands and not operand.aggregate for operand in hosted)
