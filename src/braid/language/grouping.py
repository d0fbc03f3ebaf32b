"""GROUP BY, HAVING and aggregates: from sqlglot's tree to Braid's."""

from __future__ import annotations

from sqlglot import exp

from braid.errors import QueryError
from braid.language.expressions import ExpressionReader, Resolve
from braid.language.refusal import AGGREGATE_NODES, keyword_place, place_of, refuse_clauses, written_name
from braid.model.duration import parse_duration
from braid.model.expressions.aggregates import WINDOW_END, WINDOW_START
from braid.model.expressions.expression import Call, Expression, Literal
from braid.model.grouping import TimeWindow
from braid.model.window import LONGEST

EVENT_TIME_COLUMN = "event_time"
"""How a query calls the time from which all rows of a result were alive."""

WINDOW_EXAMPLE = "for example WINDOW(event_time, '10 seconds') or WINDOW(event_time, '1 minute', '10 seconds')"


def is_grouped(statement: exp.Select) -> bool:
    clauses = (statement.args.get(name) for name in ("group", "having"))
    return any(clauses) or any(_has_aggregate(projection) for projection in statement.expressions)


def _has_aggregate(node: exp.Expr) -> bool:
    return any(isinstance(part, AGGREGATE_NODES) or _is_mean(part) for part in node.walk())


def _is_mean(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() == "mean"


class GroupedReader(ExpressionReader):
    """Reads what is selected of groups; what stands within an aggregate is read by `rows`, and so is what is grouped.

    `windowed` says whether `window` means a stretch of event time.
    """

    def __init__(self, text: str, resolve: Resolve, rows: ExpressionReader) -> None:
        super().__init__(text, resolve)
        self._rows = rows
        self.windowed = False

    def group(self, statement: exp.Select) -> tuple[list[Expression], TimeWindow | None]:
        """The keys of GROUP BY, and its window."""
        clause = statement.args.get("group")
        if clause is None:
            return [], None
        refuse_clauses(clause, frozenset({"expressions"}), self._text)
        if not clause.expressions:
            place = keyword_place("GROUP BY", clause, self._text)
            raise QueryError("nothing is grouped by", self._text, place, "name the keys, or leave out GROUP BY")
        keys: list[Expression] = []
        window: TimeWindow | None = None
        for node in clause.expressions:
            if isinstance(node, exp.Anonymous) and node.name.lower() == "window":
                if window is not None:
                    raise QueryError(
                        "results are grouped by one window", self._text, place_of(node), "leave the others out"
                    )
                window = self._window(node)
            else:
                keys.append(self._key(node))
        return list(dict.fromkeys(keys)), window

    def _key(self, node: exp.Expr) -> Expression:
        key = self._rows.read(node)
        if isinstance(key, Literal):
            raise QueryError(
                f"GROUP BY takes expressions of columns, not {key}",
                self._text,
                place_of(node),
                "write the expression itself instead of its position",
            )
        return key

    def _window(self, node: exp.Anonymous) -> TimeWindow:
        time, *lengths = node.expressions or [None]
        if not (isinstance(time, exp.Column) and not time.table and time.name.lower() == EVENT_TIME_COLUMN):
            raise QueryError(
                f"results are grouped by their own event time, {EVENT_TIME_COLUMN}",
                self._text,
                place_of(node),
                WINDOW_EXAMPLE,
            )
        if not 1 <= len(lengths) <= 2:
            raise QueryError(
                "WINDOW takes a length, and how often one starts", self._text, place_of(node), WINDOW_EXAMPLE
            )
        length, slide = (self._length(lengths[0]), self._length(lengths[-1]))
        if slide > length:
            raise QueryError(
                "windows that start less often than they are long leave results out",
                self._text,
                place_of(lengths[1]),
                "give a second length that is no longer than the first",
            )
        return TimeWindow(length, slide)

    def _length(self, node: exp.Expr) -> int:
        length = parse_duration(node.name) if isinstance(node, exp.Literal) and node.is_string else None
        if length is None or not 0 < length <= LONGEST:
            raise QueryError("the length of a window is a text", self._text, place_of(node), WINDOW_EXAMPLE)
        return length

    def _read(self, node: exp.Expr) -> Expression:
        if isinstance(node, AGGREGATE_NODES) or _is_mean(node):
            return self._aggregate(node)
        if isinstance(node, exp.Filter):
            raise QueryError(
                "FILTER is not supported", self._text, place_of(node), "aggregate a CASE: SUM(CASE WHEN .. THEN x END)"
            )
        if self.windowed and isinstance(node, exp.Column):
            bound = self._bound_of_window(node)
            if bound is not None:
                return bound
        return super()._read(node)

    def _bound_of_window(self, node: exp.Column) -> Expression | None:
        if not node.table and node.name.lower() == "window":
            raise QueryError(
                "a window has two bounds", self._text, place_of(node), "select window.start, window.end or both"
            )
        if node.table.lower() != "window":
            return None
        bounds = {"start": WINDOW_START, "end": WINDOW_END}
        if node.name.lower() not in bounds:
            raise QueryError(
                f"a window has no '{node.name}'", self._text, place_of(node), "it has window.start and window.end"
            )
        return Call(bounds[node.name.lower()].function, (), place_of(node))

    def _aggregate(self, node: exp.Expr) -> Expression:
        name, span = written_name(node, self._text).upper(), place_of(node)
        given = node.expressions if _is_mean(node) else [node.this, *(node.args.get("expressions") or ())]
        function = "avg" if _is_mean(node) else node.key
        if any(isinstance(part, exp.Distinct) for part in given):
            raise QueryError(
                f"{name}(DISTINCT ..) is not supported: Spark has no distinct aggregates over streams",
                self._text,
                span,
                "aggregate the results of the query in a further step",
            )
        if function == "count" and len(given) == 1 and isinstance(given[0], exp.Star):
            return Call("count", (), span)
        if len(given) != 1 or given[0] is None:
            problem = f"{name} takes 1 argument, not {len([x for x in given if x])}"
            raise QueryError(problem, self._text, span, f"for example {name}(a.price)")
        return Call(function, (self._rows.read(given[0]),), span)
