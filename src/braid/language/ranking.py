"""ROW_NUMBER() OVER (..) and QUALIFY: from sqlglot's tree to a `Ranking`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from braid.language.expressions.reader import ExpressionReader
from braid.language.nodes import conjuncts_of
from braid.language.resolving import match_name
from braid.language.time_windows import bound_of_window, is_time_window, time_window
from braid.language.top_n import NO_WINDOW, WINDOW_HINT, is_rank, rank_nodes
from braid.model.expressions.aggregates import WINDOW_END, WINDOW_START
from braid.model.expressions.expression import Expression, Literal
from braid.model.grouping import TimeWindow
from braid.model.output import Output, Star
from braid.model.ranking import HIGHEST_RANK, Order, Ranking

_LIMIT = (
    "QUALIFY ROW_NUMBER() OVER (..) <= 10, or "
    "SELECT .. FROM (SELECT .., ROW_NUMBER() OVER (..) AS rn ..) WHERE rn <= 10"
)

_MIRRORED = {exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE, exp.EQ: exp.EQ}


class RankingReader:
    """Reads the ranks of one SELECT; `reader` reads the expressions of its results.

    `qualified` gives each column of an expression its stream, if the query has only one.
    """

    def __init__(
        self, statement: exp.Select, reader: ExpressionReader, qualified: Callable[[Expression], Expression]
    ) -> None:
        self._statement = statement
        self._reader = reader
        self._qualified = qualified
        self._node = rank_nodes(statement)[0]
        self._names = [item.alias for item in statement.expressions if item.alias and is_rank(item.unalias().unnest())]

    def read(self, outputs: Sequence[Output | Star], *, grouped: bool) -> Ranking:
        self._check_form()
        keys: list[Expression] = []
        window: TimeWindow | None = None
        for key in self._node.args.get("partition_by") or []:
            if not is_time_window(key):
                keys.append(self._value(key))
            elif grouped or window is not None:
                hint = "name the bounds of the window of GROUP BY: window.start, or window_start"
                raise self._reader.error(key, "PARTITION BY takes no WINDOW here", hint)
            else:
                window = time_window(self._reader, key)
        if window is None and not {WINDOW_START, WINDOW_END}.intersection(keys):
            hint = "add the window of GROUP BY: PARTITION BY window.start, .." if grouped else WINDOW_HINT
            raise self._reader.error(self._node, NO_WINDOW, hint)
        order: dict[Expression, Order] = {}
        for item in map(self._order, self._node.args["order"].expressions):
            order.setdefault(item.expression, item)
        first, last, start, conditions = self._qualify(grouped=grouped)
        unique_keys, items = tuple(dict.fromkeys(keys)), tuple(order.values())
        return Ranking(tuple(outputs), unique_keys, items, window, first, last, start, conditions)

    def _check_form(self) -> None:
        node = self._node
        for other in rank_nodes(self._statement):
            if other != node:
                hint = "rank the results of the query again in a further step"
                raise self._reader.error(other, "a SELECT has only one ROW_NUMBER() OVER (..)", hint)
        if node.args.get("alias") is not None or node.args.get("spec") is not None or node.this.args.get("this"):
            hint = "write ROW_NUMBER() OVER (PARTITION BY .. ORDER BY ..)"
            raise self._reader.error(node, "this form of ROW_NUMBER is not supported", hint)
        if node.args.get("order") is None:
            hint = "write ROW_NUMBER() OVER (PARTITION BY .. ORDER BY a.price DESC)"
            raise self._reader.error(node, "ROW_NUMBER() needs an ORDER BY", hint)

    def _value(self, node: exp.Expr) -> Expression:
        if any(map(is_rank, node.find_all(exp.Window))) or (isinstance(node, exp.Column) and self._is_rank(node)):
            hint = "select it as a column of its own, and compare it with whole numbers: rn <= 10"
            raise self._reader.error(node, "ROW_NUMBER() cannot be part of an expression", hint)
        return self._qualified(self._reader.read_result(node))

    def _order(self, item: exp.Expr) -> Order:
        value = self._value(item.this)
        if isinstance(value, Literal):
            raise self._reader.error(
                item.this, f"ORDER BY takes expressions of columns, not {value}", "name the column"
            )
        return Order(value, bool(item.args.get("desc")), bool(item.args.get("nulls_first")))

    def _qualify(self, *, grouped: bool) -> tuple[int, int, Expression | None, tuple[Expression, ...]]:
        """The first and the last rank, the start of the window of a result, and other conditions on what is kept."""
        clause = self._statement.args.get("qualify")
        first, last = 1, HIGHEST_RANK + 1
        start: Expression | None = None
        conditions: list[Expression] = []
        for conjunct in () if clause is None else conjuncts_of(clause.this):
            limits = self._limits(conjunct)
            if limits is not None:
                first, last = max(first, limits[0]), min(last, limits[1])
            elif not grouped and isinstance(conjunct, exp.EQ) and self._is_start(conjunct.this):
                start = self._value(conjunct.expression)
            else:
                conditions.append(self._value(conjunct))
        if last > HIGHEST_RANK:
            problem = f"ROW_NUMBER() needs a limit of at most {HIGHEST_RANK:,}: results with higher numbers are dropped"
            raise self._reader.error(self._node, problem, f"write {_LIMIT}")
        if first > last:
            raise self._reader.error(self._node, "no number of a row meets these conditions", "numbers begin with 1")
        return first, last, start, tuple(conditions)

    def _is_start(self, node: exp.Expr) -> bool:
        bound = bound_of_window(self._reader, node)
        return bound is not None and bound == WINDOW_START

    def _is_rank(self, node: exp.Expr) -> bool:
        node = node.unnest()
        if isinstance(node, exp.Column) and not node.table:
            return bool(match_name(node.name, self._names))
        return is_rank(node)

    def _limits(self, condition: exp.Expr) -> tuple[int, int] | None:
        """The first and the last rank that a condition allows; None if it is about something else."""
        most = HIGHEST_RANK + 1
        if isinstance(condition, exp.Between) and self._is_rank(condition.this):
            return self._number(condition.args["low"]), self._number(condition.args["high"])
        kind, (left, right) = type(condition), (condition.args.get("this"), condition.args.get("expression"))
        if kind not in _MIRRORED or left is None or right is None:
            return None
        if self._is_rank(right):
            kind, left, right = _MIRRORED[kind], right, left
        if not self._is_rank(left):
            return None
        number = self._number(right)
        ranges = {
            exp.LT: (1, number - 1),
            exp.LTE: (1, number),
            exp.GT: (number + 1, most),
            exp.GTE: (number, most),
            exp.EQ: (number, number),
        }
        return ranges[kind]

    def _number(self, node: exp.Expr) -> int:
        if not isinstance(node, exp.Literal) or node.is_string or not node.name.isdigit():
            raise self._reader.error(
                node, "the number of a row is compared with a whole number", "for example rn <= 10"
            )
        return int(node.name)
