"""GROUP BY, HAVING and aggregates: from sqlglot's tree to Braid's."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

import pyarrow as pa
from sqlglot import exp

from braid.errors import QueryError
from braid.language.expressions.hosted import host_expression
from braid.language.expressions.node_reader import Resolve
from braid.language.expressions.reader import ExpressionReader
from braid.language.host_aggregates import host_aggregate, is_host_aggregate
from braid.language.nodes import conjuncts_of, span_of
from braid.language.refusal import (
    AGGREGATE_NODES,
    Unsupported,
    is_refused_everywhere,
    keyword_span,
    refuse_clauses,
    unsupported_expression,
)
from braid.language.time_windows import (
    SESSION_EXAMPLE,
    bound_of_window,
    is_session_window,
    is_time_window,
    session_window,
    time_window,
)
from braid.model.expressions.aggregates import DISTINCT, is_aggregate
from braid.model.expressions.expression import Call, Expression, HostExpression, Literal, children, has_host_part
from braid.model.grouping import SessionWindow, TimeWindow

GroupWindow = TimeWindow | SessionWindow


def is_grouped(statement: exp.Select) -> bool:
    """Whether a SELECT has GROUP BY, HAVING or an aggregate."""
    if statement.args.get("group") or statement.args.get("having"):
        return True
    return any(_is_aggregate(node) for projection in statement.expressions for node in projection.walk())


def _is_aggregate(node: exp.Expr) -> bool:
    return isinstance(node, AGGREGATE_NODES) or _is_mean(node) or is_host_aggregate(node)


def _is_mean(node: exp.Expr) -> bool:
    """Whether a node is MEAN(..), Spark's other name for AVG, which sqlglot does not know."""
    return isinstance(node, exp.Anonymous) and node.name.lower() == "mean"


def _has_host_part(expression: Expression) -> bool:
    """Whether the host computes a part of an expression from groups; what it computes for aggregates does not count."""
    if is_aggregate(expression):
        return False
    return isinstance(expression, HostExpression) or any(map(_has_host_part, children(expression)))


class GroupedReader(ExpressionReader):
    """Reads expressions of groups: those of SELECT and HAVING.

    `rows` reads expressions of single rows: the arguments of aggregates, and the keys of GROUP BY. `windowed` says
    whether `window` means the time window of GROUP BY, as in `window.start`.
    """

    def __init__(self, text: str, resolve: Resolve, rows: ExpressionReader) -> None:
        super().__init__(text, resolve)
        self._rows = rows
        self._keys: list[Expression] = []
        self.windowed = False

    def group(self, statement: exp.Select) -> tuple[list[Expression], GroupWindow | None]:
        """The keys of GROUP BY without duplicates, and its window."""
        clause = statement.args.get("group")
        if clause is None:
            return [], None
        refuse_clauses(clause, frozenset({"expressions"}), self.text)
        if not clause.expressions:
            span = keyword_span("GROUP BY", clause, self.text)
            raise QueryError("GROUP BY has no keys", self.text, span, "name the keys, or leave out GROUP BY")
        keys: list[Expression] = []
        window: GroupWindow | None = None
        for node in clause.expressions:
            if isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets):
                name = node.key.upper().replace("SETS", " SETS")
                raise self.error(node, f"{name} is not supported", "write a query for each set of keys")
            if is_time_window(node) or is_session_window(node):
                if window is not None:
                    raise self.error(node, "GROUP BY takes only one WINDOW", "remove the others")
                window = time_window(self, node) if is_time_window(node) else self._session(node)
            else:
                keys.append(self._key(node))
        if isinstance(window, SessionWindow) and not keys:
            span = keyword_span("GROUP BY", clause, self.text)
            raise QueryError("SESSION_WINDOW is the only key of GROUP BY", self.text, span, SESSION_EXAMPLE)
        self._keys = list(dict.fromkeys(keys))
        return self._keys, window

    def _session(self, node: exp.Expr) -> SessionWindow:
        if not self._rows.hosted:
            hint = "with braid.Session, Spark groups by sessions; here write WINDOW(event_time, '10 seconds')"
            raise self.error(node, "SESSION_WINDOW is not supported here", hint)
        return session_window(self, node)

    def _key(self, node: exp.Expr) -> Expression:
        key = self._rows.read_result(node)
        if isinstance(key, Literal):
            problem = f"GROUP BY takes expressions of columns, not {key}"
            raise self.error(node, problem, "write the expression itself instead of its position")
        return key

    def read_result(self, node: exp.Expr) -> Expression:
        """An expression of groups: if the host computes any part of it that is no key, the host computes all of it."""
        expression = self.read(node)
        if not _has_host_part(expression):
            return expression
        return self._key_of(node) or host_expression(self, node)

    def read_condition(self, node: exp.Expr) -> Expression:
        """The condition of HAVING. Each of its parts between ANDs is computed by the engine or by the host, whole."""
        parts = [self._condition(part) for part in conjuncts_of(node)]
        return reduce(lambda left, right: Call("and", (left, right), span_of(node)), parts)

    def _condition(self, node: exp.Expr) -> Expression:
        condition = self.read(node)
        return host_expression(self, node) if self._needs_host(condition) else condition

    def _needs_host(self, expression: Expression) -> bool:
        if expression in self._keys or is_aggregate(expression):
            return False
        return isinstance(expression, HostExpression) or any(map(self._needs_host, children(expression)))

    def value_of(self, node: exp.Expr) -> Expression | None:
        if isinstance(node, exp.Filter):
            return self._filtered(node)
        if _is_aggregate(node):
            return self._aggregate(node)
        if isinstance(node, exp.Column):
            return bound_of_window(self, node) if self.windowed else None
        return self._key_of(node) or super().value_of(node)

    def _key_of(self, node: exp.Expr) -> Expression | None:
        """The key of GROUP BY that a node is; None if it is none."""
        try:
            expression = self._rows.read_result(node)
        except QueryError:
            return None
        return expression if expression in self._keys else None

    def _read_or_leave(self, node: exp.Expr) -> Expression:
        try:
            return super()._read_or_leave(node)
        except Unsupported:
            if not self._rows.hosted or is_refused_everywhere(node):
                raise
            return self._key_of(node) or host_expression(self, node)

    def _read_node(self, node: exp.Expr) -> Expression:
        if _is_aggregate(node):
            return self._aggregate(node)
        if isinstance(node, exp.Filter):
            return self._filtered(node)
        if self.windowed and isinstance(node, exp.Column):
            bound = bound_of_window(self, node)
            if bound is not None:
                return bound
        return super()._read_node(node)

    def _filtered(self, node: exp.Filter) -> Expression:
        """AGGREGATE(x) FILTER (WHERE condition): the aggregate of x where the condition holds, else of null."""
        hint = "aggregate a CASE: SUM(CASE WHEN .. THEN x END)"
        if is_host_aggregate(node.this) and self._rows.hosted:
            return host_aggregate(self._rows, node)
        aggregate = self._aggregate(node.this) if _is_aggregate(node.this) else None
        if not isinstance(aggregate, Call):
            raise self.error(node, f"FILTER is not supported for {self.name_of(node.this)}", hint)
        condition = self._rows.read(node.expression.this)
        # COUNT(*) counts rows: those for which the condition holds.
        value = aggregate.arguments[0] if aggregate.arguments else Literal(True, pa.bool_())
        if has_host_part(condition) or has_host_part(value):
            raise self.error(node, "FILTER is not supported with functions of the host", hint)
        chosen = Call("case", (condition, value, Literal(None, pa.null())), span_of(node))
        return replace(aggregate, arguments=(chosen,), span=span_of(node))

    def _aggregate(self, node: exp.Expr) -> Expression:
        if is_host_aggregate(node):
            if not self._rows.hosted:
                raise unsupported_expression(node, self.text, [])
            return host_aggregate(self._rows, node)
        name = self.name_of(node)
        function = "avg" if _is_mean(node) else node.key
        operands = node.expressions if _is_mean(node) else [node.this, *(node.args.get("expressions") or ())]
        if operands and isinstance(operands[0], exp.Distinct):
            operands = operands[0].expressions
            # The least and the largest value are the same with and without repeated ones.
            function += "" if function in ("min", "max") else DISTINCT
        if function == "count" and len(operands) == 1 and isinstance(operands[0], exp.Star):
            return Call("count", (), span_of(node))
        if len(operands) != 1 or operands[0] is None:
            count = sum(bool(operand) for operand in operands)
            word = "DISTINCT " if function.endswith(DISTINCT) else ""
            raise self.error(node, f"{name} takes 1 argument, not {count}", f"for example {name}({word}a.price)")
        return Call(function, (self._rows.read_result(operands[0]),), span_of(node))
