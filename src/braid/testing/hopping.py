"""`[HOP ..]` for the oracle, by definition: of each two rows that are there, the windows are the same.

It compares every stream with every other, and does not ask which of them an outer join can leave out.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from braid.language.hopping import is_hopping
from braid.language.nodes import COMMA, StreamTable
from braid.model.window_function import WINDOW_START
from braid.testing.fixed_joins import is_hiding, pairs_of


def compare_each_window(statement: exp.Expr, _text: str) -> None:
    """Say in each ON and in each subquery that rows of streams with `[HOP ..]` are in the same window.

    >>> from braid.language.dialect import parse_statement
    >>> hop = "[HOP 4 SECONDS SLIDE 2 SECONDS]"
    >>> tree = parse_statement(f"SELECT 1 FROM a {hop} JOIN b {hop} ON a.k = b.k")
    >>> compare_each_window(tree, "")
    >>> print(tree.args["joins"][0].args["on"].sql())
    a.k = b.k AND (a.window_start = b.window_start OR a.window_start IS NULL OR b.window_start IS NULL)
    """
    for select in statement.find_all(exp.Select):
        if select.args.get("from_") is not None and any(map(is_hopping, select.find_all(StreamTable))):
            _compare_in(select)


def _compare_in(select: exp.Select) -> None:
    pairs = pairs_of(select)
    hidden = {id(entry) for pair in pairs if is_hiding(pair.join) for entry in pair.right}
    for pair in pairs:
        shown = [entry for entry in pair.left if id(entry) not in hidden]
        joined = [entry for entry in pair.right if id(entry) not in hidden or is_hiding(pair.join)]
        conditions = _same_windows(shown, joined)
        if pair.join.meta.get(COMMA):
            select.where(*conditions, copy=False)
        elif conditions:
            written = pair.join.args.get("on")
            pair.join.set("on", exp.and_(*([] if written is None else [written]), *conditions, copy=False))
            if str(pair.join.args.get("kind") or "").upper() == "CROSS":
                pair.join.set("kind", None)
    entries = pairs[-1].entries if pairs else (select.args["from_"].this,)
    shown = [entry for entry in entries if id(entry) not in hidden]
    for test in select.find_all(exp.Exists, exp.In):
        subquery = (test.args.get("query") or test.this).unnest()
        if isinstance(subquery, exp.Select) and subquery.parent_select is select:
            subquery.where(*_same_windows(shown, [subquery.args["from_"].this]), copy=False)


def _same_windows(left: Iterable[exp.Expr], right: Iterable[exp.Expr]) -> list[exp.Expr]:
    return [_same(one.alias_or_name, other.alias_or_name) for one in _hopping(left) for other in _hopping(right)]


def _hopping(entries: Iterable[exp.Expr]) -> list[StreamTable]:
    return [entry for entry in entries if isinstance(entry, StreamTable) and is_hopping(entry)]


def _same(left: str, right: str) -> exp.Expr:
    starts = [exp.column(WINDOW_START, stream) for stream in (left, right)]
    absent = [exp.Is(this=start.copy(), expression=exp.null()) for start in starts]
    return exp.paren(exp.or_(exp.EQ(this=starts[0], expression=starts[1]), *absent, copy=False), copy=False)
