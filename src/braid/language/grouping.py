"""GROUP BY, HAVING and aggregates: from sqlglot's tree to Braid's."""

from __future__ import annotations

from sqlglot import exp

from braid.errors import QueryError
from braid.language.expressions.hosted import host_expression
from braid.language.expressions.node_reader import Resolve
from braid.language.expressions.reader import ExpressionReader
from braid.language.host_aggregates import distinct_aggregate, host_aggregate, is_host_aggregate
from braid.language.nodes import span_of
from braid.language.refusal import (
    AGGREGATE_NODES,
    Unsupported,
    is_refused_everywhere,
    keyword_place,
    refuse_clauses,
    unsupported_expression,
)
from braid.model.duration import parse_duration
from braid.model.expressions.aggregates import WINDOW_END, WINDOW_START, is_aggregate
from braid.model.expressions.expression import Call, Expression, HostExpression, Literal, children
from braid.model.grouping import TimeWindow
from braid.model.window import LONGEST

EVENT_TIME_COLUMN = "event_time"
"""The name in queries of a result's event time, the time from which all its rows were alive."""

WINDOW_EXAMPLE = "for example WINDOW(event_time, '10 seconds') or WINDOW(event_time, '1 minute', '10 seconds')"


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

    def group(self, statement: exp.Select) -> tuple[list[Expression], TimeWindow | None]:
        """The keys of GROUP BY without duplicates, and its window."""
        clause = statement.args.get("group")
        if clause is None:
            return [], None
        refuse_clauses(clause, frozenset({"expressions"}), self.text)
        if not clause.expressions:
            span = keyword_place("GROUP BY", clause, self.text)
            raise QueryError("GROUP BY has no keys", self.text, span, "name the keys, or leave out GROUP BY")
        keys: list[Expression] = []
        window: TimeWindow | None = None
        for node in clause.expressions:
            if isinstance(node, exp.Anonymous) and node.name.lower() == "window":
                if window is not None:
                    raise self.error(node, "GROUP BY takes only one WINDOW", "remove the others")
                window = self._window(node)
            else:
                keys.append(self._key(node))
        self._keys = list(dict.fromkeys(keys))
        return self._keys, window

    def _key(self, node: exp.Expr) -> Expression:
        key = self._rows.read_result(node)
        if isinstance(key, Literal):
            problem = f"GROUP BY takes expressions of columns, not {key}"
            raise self.error(node, problem, "write the expression itself instead of its position")
        return key

    def _window(self, node: exp.Anonymous) -> TimeWindow:
        """WINDOW(event_time, length) or WINDOW(event_time, length, slide)."""
        time, *lengths = node.expressions or [None]
        if not (isinstance(time, exp.Column) and not time.table and time.name.lower() == EVENT_TIME_COLUMN):
            problem = f"the first argument of WINDOW must be {EVENT_TIME_COLUMN}"
            raise self.error(node, problem, WINDOW_EXAMPLE)
        if not 1 <= len(lengths) <= 2:
            raise self.error(node, "WINDOW takes event_time, a length and at most one slide", WINDOW_EXAMPLE)
        length = self._length(lengths[0])
        slide = self._length(lengths[-1])
        if slide > length:
            problem = "the slide of WINDOW is longer than its length, so some results would be in no window"
            raise self.error(lengths[1], problem, "make the slide at most as long as the length")
        return TimeWindow(length, slide)

    def _length(self, node: exp.Expr) -> int:
        """A length of time in quotes, in microseconds."""
        length = parse_duration(node.name) if isinstance(node, exp.Literal) and node.is_string else None
        if length is None or not 0 < length <= LONGEST:
            raise self.error(node, "the length of a window must be a length of time in quotes", WINDOW_EXAMPLE)
        return length

    def read_result(self, node: exp.Expr) -> Expression:
        """An expression of groups: if the host computes any part of it that is no key, the host computes all of it."""
        expression = self.read(node)
        if not _has_host_part(expression):
            return expression
        return self._key_of(node) or host_expression(self, node)

    def value_of_groups(self, node: exp.Expr) -> Expression | None:
        if _is_aggregate(node):
            return self._aggregate(node)
        if isinstance(node, exp.Column):
            return self._bound_of_window(node) if self.windowed else None
        return self._key_of(node)

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
            raise self.error(node, "FILTER is not supported", "aggregate a CASE: SUM(CASE WHEN .. THEN x END)")
        if self.windowed and isinstance(node, exp.Column):
            bound = self._bound_of_window(node)
            if bound is not None:
                return bound
        return super()._read_node(node)

    def _bound_of_window(self, node: exp.Column) -> Expression | None:
        """window.start or window.end; None for any other column."""
        if not node.table and node.name.lower() == "window":
            raise self.error(node, "a window has two bounds", "select window.start, window.end or both")
        if node.table.lower() != "window":
            return None
        bounds = {"start": WINDOW_START, "end": WINDOW_END}
        if node.name.lower() not in bounds:
            raise self.error(node, f"a window has no '{node.name}'", "it has window.start and window.end")
        return Call(bounds[node.name.lower()].function, (), span_of(node))

    def _aggregate(self, node: exp.Expr) -> Expression:
        if is_host_aggregate(node):
            if not self._rows.hosted:
                raise unsupported_expression(node, self.text, [])
            return host_aggregate(self._rows, node)
        name = self.name_of(node)
        function = "avg" if _is_mean(node) else node.key
        operands = node.expressions if _is_mean(node) else [node.this, *(node.args.get("expressions") or ())]
        if any(isinstance(operand, exp.Distinct) for operand in operands):
            raise distinct_aggregate(self, node)
        if function == "count" and len(operands) == 1 and isinstance(operands[0], exp.Star):
            return Call("count", (), span_of(node))
        if len(operands) != 1 or operands[0] is None:
            count = sum(bool(operand) for operand in operands)
            raise self.error(node, f"{name} takes 1 argument, not {count}", f"for example {name}(a.price)")
        return Call(function, (self._rows.read_result(operands[0]),), span_of(node))
