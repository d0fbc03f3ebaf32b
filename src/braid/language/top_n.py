"""Top n per group in the tree: SELECTs around one with ROW_NUMBER() become a single SELECT with QUALIFY.

`SELECT .. FROM (SELECT .., ROW_NUMBER() OVER (..) AS rn FROM ..) WHERE rn <= 3` is what users write where there is no
QUALIFY. The SELECT in brackets may read groups, `FROM (SELECT .. GROUP BY ..)`. None of these has a window of its own:
each works on the rows of the one inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from sqlglot import exp

from braid.errors import QueryError, Span, did_you_mean
from braid.language.grouping import is_grouped
from braid.language.nodes import SPAN, VALUE, StreamTable, span_of
from braid.language.refusal import refuse_clauses
from braid.language.resolving import match_name
from braid.model.output import EVENT_TIME_COLUMN
from braid.model.window_function import WINDOW_END, WINDOW_START

NO_WINDOW = "ranks of a stream are final only within a window of time, and PARTITION BY has none"
WINDOW_HINT = (
    "write PARTITION BY window_start, window_end, .. over TUMBLE(..) or HOP(..), or "
    "PARTITION BY WINDOW(event_time, '1 minute'), .."
)
_CLAUSES_AROUND = frozenset({"expressions", "from_", "where", "qualify", "with_"})


def rank_nodes(select: exp.Select) -> list[exp.Window]:
    """Each ROW_NUMBER() OVER (..) in the SELECT list and QUALIFY of a SELECT itself."""
    qualify = select.args.get("qualify")
    clauses = [*select.expressions, *([] if qualify is None else [qualify])]
    window_functions = chain.from_iterable(clause.find_all(exp.Window) for clause in clauses)
    return [node for node in window_functions if is_rank(node)]


def is_rank(node: exp.Expr) -> bool:
    return isinstance(node, exp.Window) and isinstance(node.this, exp.RowNumber)


def is_part_of_ranking(table: exp.Expr) -> bool:
    """Whether an entry of FROM is a SELECT in brackets that becomes one with the SELECT around it."""
    around = table.find_ancestor(exp.Select)
    if around is None or around.args.get("from_") is None:
        return False
    return around.args["from_"].this is table and _inner_select(around) is not None


def rank_levels(statement: exp.Select) -> list[exp.Select]:
    """The SELECTs that `merged` makes one, the outermost first; each of the others is a copy on its own."""
    levels = [statement]
    inner = _inner_select(statement)
    while inner is not None:
        levels.append(inner.copy())
        inner = _inner_select(levels[-1])
    return levels


def with_inlined_ranks(statement: exp.Select) -> exp.Select:
    """The statement with what WITH defines in its place in FROM, where it becomes one with the SELECT around it.

    >>> from braid.language.dialect import parse_statement
    >>> over = "ROW_NUMBER() OVER (ORDER BY k)"
    >>> tree = parse_statement(f"WITH r AS (SELECT k, {over} AS n FROM a [NOW]) SELECT k FROM r WHERE n <= 2")
    >>> with_inlined_ranks(tree).sql(dialect="braid")
    'SELECT k FROM (SELECT k, ROW_NUMBER() OVER (ORDER BY k) AS n FROM a [NOW]) AS r WHERE n <= 2'
    """
    clause = statement.args.get("with_")
    select: exp.Select | None = statement
    while clause is not None and select is not None:
        table = _only_table(select)
        if table is not None and not table.args.get("select") and not table.args.get("function"):
            _inline(table, select, clause)
        select = _inner_select(select)
    if clause is not None and not clause.expressions:
        statement.set("with_", None)
    return statement


def _inline(table: StreamTable, around: exp.Select, clause: exp.Expr) -> None:
    for definition in clause.expressions:
        select = definition.this
        if not match_name(table.name, [definition.alias]) or not isinstance(select, exp.Select):
            continue
        if _belongs_together(around, select):
            named = [other for other in clause.root().find_all(StreamTable) if match_name(other.name, [table.name])]
            table.set("alias", exp.TableAlias(this=exp.to_identifier(table.alias_or_name)))
            table.set("this", exp.to_identifier("SELECT"))
            table.set("select", select.copy())
            if named == [table]:
                definition.pop()
        return


def _only_table(select: exp.Select) -> StreamTable | None:
    """The only entry of FROM, if it has no window."""
    origin = select.args.get("from_")
    table = None if origin is None else origin.this
    if not isinstance(table, StreamTable) or select.args.get("joins") or table.args.get("joins"):
        return None
    return table if table.window is None else None


def _inner_select(select: exp.Select) -> exp.Select | None:
    """The SELECT in brackets that becomes one with a SELECT."""
    table = _only_table(select)
    inner = None if table is None else table.args.get("select")
    inner = None if inner is None else inner.unnest()
    return inner if isinstance(inner, exp.Select) and _belongs_together(select, inner) else None


def _belongs_together(around: exp.Select, inner: exp.Select) -> bool:
    if rank_nodes(around):
        return is_grouped(inner) or bool(rank_nodes(inner))
    return bool(rank_nodes(inner)) or _inner_select(inner) is not None


def rank_by_windows(statement: exp.Select, text: str) -> None:
    """Put the windows of TUMBLE or HOP that results are partitioned by into PARTITION BY as WINDOW(event_time, ..).

    That tells when a partition is complete. A result of inner joins is in the window of event time that its rows of
    TUMBLE or HOP are in; of HOP's windows, which overlap, it is ranked in that one only.
    """
    nodes = [] if is_grouped(statement) else rank_nodes(statement)
    for node in nodes:
        keys = node.args.get("partition_by") or []
        if any(isinstance(key, exp.Anonymous) and key.name.lower() == "window" for key in keys):
            continue
        table = next((table for key in keys if (table := _function_of(key, statement))), None)
        if table is None or table.function is None:
            raise QueryError(NO_WINDOW, text, span_of(node), WINDOW_HINT)
        if any(_is_fixed(join) for join in statement.args.get("joins") or ()):
            problem = "beside outer, semi and anti joins, ranks are within windows of the event time of results"
            length = f"'{table.function.size} microseconds'"
            hint = f"write PARTITION BY WINDOW({EVENT_TIME_COLUMN}, {length}) instead of window_start and window_end"
            raise QueryError(problem, text, span_of(node), hint)
        function = table.function
        lengths = [exp.Literal.string(f"{length} microseconds") for length in (function.size, function.slide)]
        window = exp.Anonymous(this="WINDOW", expressions=[exp.column(EVENT_TIME_COLUMN), *lengths])
        window.meta[SPAN] = span_of(node)
        node.set("partition_by", [*keys, window])
        if function.slide != function.size and node is nodes[0]:
            own = exp.EQ(this=exp.column("start", "window"), expression=exp.column(WINDOW_START, table.alias_or_name))
            _add_condition(statement, "qualify", exp.Qualify, own)


def _function_of(key: exp.Expr, statement: exp.Select) -> StreamTable | None:
    """The entry of FROM with a window function whose bound a key of PARTITION BY is; None for any other key."""
    if not isinstance(key, exp.Column) or key.name.casefold() not in (WINDOW_START, WINDOW_END):
        return None
    clauses = [statement.args.get("from_"), *(statement.args.get("joins") or ())]
    entries = [clause.this for clause in clauses if clause is not None]
    tables = [entry for entry in entries if isinstance(entry, StreamTable) and entry.function is not None]
    if key.table:
        tables = [table for table in tables if match_name(key.table, [table.alias_or_name])]
    return tables[0] if len(tables) == 1 else None


def _is_fixed(join: exp.Join) -> bool:
    return bool(join.args.get("side")) or str(join.args.get("kind") or "").upper() not in ("", "INNER", "CROSS")


def merged(levels: Sequence[exp.Select], text: str) -> exp.Select:
    """One SELECT that says what these say, each of which reads the one after it."""
    *around, select = levels
    for outer in reversed(around):
        select = _Merge(outer, select, text).select()
    return select


class _Merge:
    """A SELECT and the one in brackets that it reads."""

    def __init__(self, outer: exp.Select, inner: exp.Select, text: str) -> None:
        self._outer = outer
        self._inner = inner
        self._text = text
        self._alias = outer.args["from_"].this.alias_or_name
        self._columns = {self._name(item): item.unalias() for item in inner.expressions if not item.is_star}
        self._has_star = any(item.is_star for item in inner.expressions)

    def select(self) -> exp.Select:
        outer, inner = self._outer, self._inner
        if is_grouped(outer):
            hint = f"write a window after the brackets: (SELECT ..) [NOW] AS {self._alias}"
            span = span_of(outer.expressions[0])
            raise QueryError("groups of ranked results read them as a stream", self._text, span, hint)
        refuse_clauses(outer, _CLAUSES_AROUND, self._text)
        if rank_nodes(outer) and rank_nodes(inner):
            problem = "ROW_NUMBER() over ranked results is not supported"
            hint = f"read them as a stream, with a window after the brackets: (SELECT ..) [NOW] AS {self._alias}"
            raise QueryError(problem, self._text, span_of(rank_nodes(outer)[0]), hint)
        self._decide_ties()
        items = [copy for item in outer.expressions for copy in self._item(item)]
        where, qualify = outer.args.get("where"), outer.args.get("qualify")
        clause, kind = ("qualify", exp.Qualify) if rank_nodes(inner) else ("having", exp.Having)
        if where is not None:
            _add_condition(inner, clause, kind, self._over_inner(where.this))
        if qualify is not None:
            _add_condition(inner, "qualify", exp.Qualify, self._over_inner(qualify.this))
        inner.set("expressions", items)
        return inner

    def _name(self, item: exp.Expr) -> str:
        """The name of a column of the SELECT in brackets."""
        if isinstance(item, exp.Alias | exp.Column):
            return str(item.alias_or_name)
        span = span_of(item)
        return "" if span is None else " ".join(self._text[span.start : span.end].split())

    def _decide_ties(self) -> None:
        """Let ORDER BY go on with all columns of the SELECT that ranks, in the direction of its last item."""
        for node in rank_nodes(self._inner):
            order = node.args.get("order")
            if order is not None:
                descending = bool(order.expressions[-1].args.get("desc"))
                for column in self._columns.values():
                    if not column.find(exp.Window) and column.find(exp.Column, exp.AggFunc):
                        item = exp.Ordered(this=column.copy(), desc=descending, nulls_first=not descending)
                        order.append("expressions", item)

    def _item(self, item: exp.Expr) -> list[exp.Expr]:
        """An item of the SELECT list over what the SELECT in brackets reads."""
        star = item.this if isinstance(item, exp.Column) else item
        if isinstance(star, exp.Star):
            if isinstance(item, exp.Column):
                self._check_qualifier(item)
            return [column.copy() for column in self._inner.expressions]
        if isinstance(item, exp.Alias):
            alias = item.copy()
            alias.set("this", self._over_inner(item.this))
            return [alias]
        return [exp.alias_(self._over_inner(item), self._name(item), quoted=True, copy=False)]

    def _over_inner(self, node: exp.Expr) -> exp.Expr:
        """A copy of a node in which the columns of the SELECT in brackets are what they stand for."""
        whole = exp.Paren(this=node.copy())
        for column in list(whole.find_all(exp.Column)):
            value = self._value(column)
            if value is not None:
                column.replace(_placed(value, span_of(column), is_whole=column.parent is whole))
        merged_node: exp.Expr = whole.this
        return merged_node

    def _value(self, column: exp.Column) -> exp.Expr | None:
        """What a column stands for; None if it is a column of a star."""
        self._check_qualifier(column)
        matches = match_name(column.name, self._columns)
        if len(matches) == 1:
            value: exp.Expr = self._columns[matches[0]].copy()
            return value
        if self._has_star and not matches:
            return exp.Column(this=column.this.copy())
        problem = f"the SELECT in brackets has {'several columns' if matches else 'no column'} '{column.name}'"
        raise QueryError(problem, self._text, span_of(column), did_you_mean(column.name, self._columns))

    def _check_qualifier(self, column: exp.Column) -> None:
        if column.table and not match_name(column.table, [self._alias]):
            problem = f"'{column.table}' is not a stream of this query"
            hint = did_you_mean(column.table, [self._alias])
            raise QueryError(problem, self._text, span_of(column), hint)


def _placed(value: exp.Expr, span: Span | None, *, is_whole: bool) -> exp.Expr:
    """An expression in the place of a column: in the text it stands where the column does."""
    if isinstance(value, exp.Column) and span is not None:
        value.meta[SPAN] = span
        for part in value.parts:
            part.meta.update(start=span.start, end=span.end - 1)  # As sqlglot notes them.
        return value
    if is_whole:
        return value
    bracketed = exp.Paren(this=value)
    bracketed.meta[SPAN] = span
    bracketed.meta[VALUE] = True
    return bracketed


def _add_condition(select: exp.Select, clause: str, kind: type[exp.Expr], condition: exp.Expr) -> None:
    """Add a condition to QUALIFY or HAVING."""
    before = select.args.get(clause)
    if before is not None:
        operands = [side if isinstance(side, exp.And) else exp.paren(side) for side in (before.this, condition)]
        condition = exp.And(this=operands[0], expression=operands[1])
    select.set(clause, kind(this=condition))
