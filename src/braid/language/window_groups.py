"""GROUP BY window_start, window_end over a stream with a window function: a GROUP BY WINDOW(event_time, ..)."""

from __future__ import annotations

from sqlglot import exp

from braid.errors import QueryError
from braid.language.nodes import SPAN, StreamTable, WindowNode, span_of
from braid.model.output import EVENT_TIME_COLUMN
from braid.model.window import Now
from braid.model.window_function import WINDOW_END, WINDOW_START

_BOUNDS = {WINDOW_START: "start", WINDOW_END: "end"}


def group_by_windows(statement: exp.Select, text: str) -> None:
    """Rewrite groups by the windows of a function over the only stream of a statement.

    A group is complete when its window is over, which only `WINDOW(event_time, ..)` tells Spark. It puts each row into
    the same windows as the function does.

    >>> from braid.language.dialect import parse_statement
    >>> tumble = "TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL 1 SECOND)"
    >>> tree = parse_statement(f"SELECT window_end, COUNT(*) FROM {tumble} GROUP BY window_start, window_end")
    >>> group_by_windows(tree, "")
    >>> tree.sql(dialect="braid").partition(" GROUP BY ")[2]
    "WINDOW(event_time, '1000000 microseconds', '1000000 microseconds')"
    """
    group = statement.args.get("group")
    table = statement.args["from_"].this if statement.args.get("from_") else None
    if group is None or not isinstance(table, StreamTable) or table.function is None or statement.args.get("joins"):
        return
    alias = table.alias_or_name.casefold()
    bounds = [column for column in group.expressions if _bound(column, alias)]
    if not bounds:
        return
    if {_bound(column, alias) for column in bounds} != set(_BOUNDS.values()):
        hint = "write GROUP BY window_start, window_end, .."
        raise QueryError("groups by windows are by both of their bounds", text, span_of(bounds[0]), hint)
    keys = [key for key in group.expressions if not _bound(key, alias)]
    lengths = [exp.Literal.string(f"{length} microseconds") for length in (table.function.size, table.function.slide)]
    window = exp.Anonymous(this="WINDOW", expressions=[exp.column(EVENT_TIME_COLUMN), *lengths])
    window.meta[SPAN] = span_of(bounds[0])
    group.set("expressions", [*keys, window])
    for column in list(statement.find_all(exp.Column)):
        bound = _bound(column, alias)
        if bound is not None:
            replacement = exp.column(bound, "window")
            replacement.meta[SPAN] = span_of(column)
            is_output = column.parent is statement and column.arg_key == "expressions"
            column.replace(exp.alias_(replacement, column.name, quoted=True) if is_output else replacement)
    table.set("alias", exp.TableAlias(this=exp.to_identifier(table.alias_or_name, quoted=True)))
    table.set("function", None)
    table.set("window", WindowNode(this=Now()))


def _bound(node: exp.Expr, alias: str) -> str | None:
    """The bound of a window, start or end, that a column of the stream called `alias` is; None for any other node."""
    if not isinstance(node, exp.Column) or (node.table and node.table.casefold() != alias):
        return None
    return _BOUNDS.get(node.name.casefold())
