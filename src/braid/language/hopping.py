"""`[HOP ..]`: rows of the same hopping window join, and no others, so the windows of all such streams are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from braid.errors import QueryError
from braid.language.nodes import COMMA, StreamTable, span_of
from braid.model.window_function import WINDOW_START


def compare_windows(statement: exp.Expr, text: str) -> None:
    """Add to the joins of each SELECT that rows of streams with `[HOP ..]` are in the same window.

    >>> from braid.language.dialect import parse_statement
    >>> hop = "[HOP 4 SECONDS SLIDE 2 SECONDS]"
    >>> tree = parse_statement(f"SELECT 1 FROM a {hop} JOIN b {hop} ON a.k = b.k")
    >>> compare_windows(tree, "")
    >>> print(tree.args["joins"][0].args["on"].sql())
    a.k = b.k AND a.window_start = b.window_start
    """
    for select in statement.find_all(exp.Select):
        if any(map(is_hopping, select.find_all(StreamTable))):
            _Comparison(select, text).add()


def is_hopping(table: StreamTable) -> bool:
    """Whether an entry of FROM has the window `[HOP ..]`."""
    return table.function is not None and table.function.time is None


@dataclass(frozen=True)
class _Rows:
    """Rows of a side of a join, and the streams with `[HOP ..]` that say in which window a row is.

    An outer join may leave out any of them, and those that it does not are in one window. `surely` says that each row
    has at least one of them, and therefore a window.
    """

    streams: tuple[str, ...]
    surely: bool


NO_WINDOWS = _Rows((), surely=False)


class _Comparison:
    def __init__(self, select: exp.Select, text: str) -> None:
        self._select = select
        self._text = text
        self._first: StreamTable | None = None

    def add(self) -> None:
        select = self._select
        if select.args.get("from_") is None:
            return
        rows = self._entry(select.args["from_"].this, select.args.get("joins") or ())
        for test in select.find_all(exp.Exists, exp.In):
            subquery = (test.args.get("query") or test.this).unnest()
            if isinstance(subquery, exp.Select) and subquery.parent_select is select and subquery.args.get("from_"):
                tested = self._entry(subquery.args["from_"].this)
                if rows.streams and tested.streams:
                    subquery.where(_same(rows, tested), copy=False)

    def _entry(self, table: exp.Expr, following: Sequence[exp.Expr] = ()) -> _Rows:
        """The rows of an entry and the joins that follow it."""
        if isinstance(table, StreamTable):
            self._check(table)
            rows = _Rows((table.alias_or_name,), surely=True) if is_hopping(table) else NO_WINDOWS
        else:
            rows = self._entry(table.this) if isinstance(table.this, exp.Expr) else NO_WINDOWS
        before = NO_WINDOWS
        """The rows before the last comma, which joins later than JOIN."""
        for join in (*(table.args.get("joins") or ()), *following):
            right = self._entry(join.this)
            if join.meta.get(COMMA):
                before, rows = self._after_comma(before, rows), right
            else:
                rows = self._join(rows, right, join)
        return self._after_comma(before, rows)

    def _after_comma(self, before: _Rows, rows: _Rows) -> _Rows:
        if before.streams and rows.streams:
            self._select.where(_same(before, rows), copy=False)
        return _both(before, rows)

    def _join(self, left: _Rows, right: _Rows, join: exp.Expr) -> _Rows:
        if left.streams and right.streams:
            written = join.args.get("on")
            join.set("on", exp.and_(*([] if written is None else [written]), _same(left, right), copy=False))
            if str(join.args.get("kind") or "").upper() == "CROSS":
                join.set("kind", None)
        side, kind = (str(join.args.get(key) or "").upper() for key in ("side", "kind"))
        if kind in ("SEMI", "ANTI"):
            return left
        if side == "FULL":
            return _Rows((*left.streams, *right.streams), left.surely and right.surely)
        if side == "LEFT":
            return _both(left, replace(right, surely=False))
        return _both(replace(left, surely=False), right) if side == "RIGHT" else _both(left, right)

    def _check(self, table: StreamTable) -> None:
        """Refuse windows that differ: rows of such streams would never be in the same window."""
        if not is_hopping(table):
            return
        if table.args.get("select") is not None:
            hint = "name the SELECT with WITH, and write the window after that name"
            raise QueryError("[HOP ..] after a SELECT is not supported", self._text, span_of(table), hint)
        first = self._first = self._first or table
        if first.function != table.function:
            problem = f"the hopping windows of '{first.alias_or_name}' and '{table.alias_or_name}' differ"
            hint = "rows of the same window join: write the same size and slide, or HOP(TABLE ..) and a comparison"
            raise QueryError(problem, self._text, span_of(table), hint)


def _both(left: _Rows, right: _Rows) -> _Rows:
    """Rows of two sides in the same window: the streams of one side are enough if they surely have it."""
    for side in (left, right):
        if side.surely:
            return side
    return _Rows((*left.streams, *right.streams), surely=False)


def _same(left: _Rows, right: _Rows) -> exp.Expr:
    """That two rows are in the same window; without a window, a row is in the same window as any other.

    A plain equality, which can be a key, if both surely have a window.
    """
    windows = [_window_of(rows) for rows in (left, right)]
    same = exp.EQ(this=windows[0], expression=windows[1])
    absent = [
        exp.Is(this=window.copy(), expression=exp.null())
        for window, rows in zip(windows, (left, right), strict=True)
        if not rows.surely
    ]
    return exp.paren(exp.or_(same, *absent, copy=False), copy=False) if absent else same


def _window_of(rows: _Rows) -> exp.Expr:
    """The window of a row: that of the first stream that is not null."""
    columns = [exp.column(WINDOW_START, stream) for stream in rows.streams]
    return columns[0] if len(columns) == 1 else exp.Coalesce(this=columns[0], expressions=columns[1:])
