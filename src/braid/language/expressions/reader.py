"""`ExpressionReader`: reads a node of any kind. Nodes that the language does not have are refused by name."""

from __future__ import annotations

from sqlglot import exp

from braid.language.expressions.casts import CASTS
from braid.language.expressions.conditions import CONDITIONS, refuse_bare_tests
from braid.language.expressions.functions import FUNCTIONS
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
from braid.language.refusal import unknown_function, unsupported_expression
from braid.model.expressions.expression import Expression

DEEPEST = 100
"""The deepest nesting of expressions, so that walking them does not exhaust the stack."""

_SPECIAL: dict[type[exp.Expr], ReadNode] = {**VALUES, **CASTS, **CONDITIONS, **FUNCTIONS, **TIME_FUNCTIONS}
"""The nodes with a function of their own to read them."""


class ExpressionReader(NodeReader):
    """Reads the expressions of one query text."""

    def __init__(self, text: str, resolve: Resolve) -> None:
        super().__init__(text, resolve)
        self._depth = 0

    def read(self, node: exp.Expr) -> Expression:
        self._depth += 1
        try:
            if self._depth > DEEPEST:
                raise self.error(node, f"expressions are nested more than {DEEPEST} deep", "simplify it")
            return self._read_node(node)
        finally:
            self._depth -= 1

    def _read_node(self, node: exp.Expr) -> Expression:
        kind = type(node)
        if kind in _SPECIAL or kind in OPERATORS or kind in FUNCTION_NODES:
            self._refuse_foreign_name(node)
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

    def _refuse_foreign_name(self, node: exp.Expr) -> None:
        """Refuse names that sqlglot reads as one of Braid's functions, but that Spark does not have."""
        call = node.meta.get(CALL)
        if call is not None and not isinstance(node, exp.Anonymous) and call.name.lower() not in CALLED:
            raise unknown_function(call.name, self.text, span_of(node), list(FUNCTION_NAMES))

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
        raise self.error(node, problem, "the reference of the query language lists its arguments")
