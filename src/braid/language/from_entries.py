"""The entries of a FROM with tables: what each is, how it is joined, and which columns belong to it."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from braid.errors import QueryError, Span, did_you_mean
from braid.language.nodes import COMMA, SPAN, StreamTable, span_of
from braid.language.resolving import match_name
from braid.language.views import Scope
from braid.model.query import two_streams_called
from braid.model.stream import Stream
from braid.model.table import Table

INNER, LEFT, SEMI, ANTI, RIGHT, FULL = "INNER", "LEFT", "LEFT SEMI", "LEFT ANTI", "RIGHT", "FULL"
"""The kinds of joins."""

_KINDS = {("", "SEMI"): SEMI, ("", "ANTI"): ANTI, ("LEFT", "SEMI"): SEMI, ("LEFT", "ANTI"): ANTI}


@dataclass(eq=False)
class FromEntry:
    """An entry of FROM; `join` is None for the first. `nullable` are the streams that may be all nulls before it."""

    alias: str
    node: StreamTable
    relation: Stream | Table
    kind: str
    join: exp.Join | None
    nullable: frozenset[str]
    conditions: list[exp.Expr] = field(default_factory=list)
    """Of a table: what is checked where it is joined with its stream."""

    @property
    def is_table(self) -> bool:
        return isinstance(self.relation, Table)

    @property
    def is_shown(self) -> bool:
        """Whether SELECT and WHERE can read its columns."""
        return self.kind not in (SEMI, ANTI)


class Entries:
    """The entries of FROM, in the order of the text. At least one of them is a table."""

    def __init__(self, statement: exp.Select, scope: Scope) -> None:
        self._scope = scope
        self._text = scope.text
        self.all: list[FromEntry] = []
        self._read(statement)
        self.tables = [entry for entry in self.all if entry.is_table]
        self.streams = {entry.alias: entry for entry in self.all if not entry.is_table}

    def _read(self, statement: exp.Select) -> None:
        nullable: frozenset[str] = frozenset()
        joins = statement.args.get("joins") or []
        for node, join in [(statement.args["from_"].this, None), *((join.this, join) for join in joins)]:
            if not isinstance(node, StreamTable) or node.args.get("joins"):
                hint = "write the joins one after the other: a [..] JOIN b [..] ON .. JOIN t ON .."
                raise self.error(node, "joins in brackets cannot stand beside a table", hint)
            relation = self._scope.find(node.name)
            if relation is None:
                hint = did_you_mean(node.name, self._scope.relations)
                raise self.error(node, f"there is no stream '{node.name}'", hint)
            kind = INNER if join is None else _kind(join)
            entry = FromEntry(node.alias_or_name, node, relation, kind, join, nullable)
            if any(other.alias == entry.alias for other in self.all):
                raise two_streams_called(entry.alias, self._text, span_of(node))
            if entry.is_table:
                self._check_table(entry)
            else:
                if entry.kind in (RIGHT, FULL):
                    nullable |= {other.alias for other in self.all if not other.is_table}
                if entry.kind in (LEFT, FULL):
                    nullable |= {entry.alias}
            self._check_place(entry)
            self.all.append(entry)

    def _check_place(self, entry: FromEntry) -> None:
        """Refuse an inner join of a stream after an outer, semi or anti join of streams, and a comma beside one."""
        fixed = [other for other in self.all if not other.is_table and other.kind != INNER]
        commas = [other for other in self.all if other.join is not None and other.join.meta.get(COMMA)]
        hint = "join the table in a SELECT in FROM: (SELECT .. FROM s JOIN t ON ..) [RANGE ..] AS s"
        if not entry.is_table and entry.kind == INNER and fixed:
            problem = f"beside a table, the inner join of '{entry.alias}' after {fixed[0].kind} JOIN is not supported"
            raise self.error(entry.node, problem, hint)
        if not entry.is_table and entry.kind != INNER and any(not other.is_table for other in commas):
            problem = f"beside a table, {entry.kind} JOIN and streams separated by commas are not supported"
            raise self.error(entry.node, problem, hint)

    def _check_table(self, entry: FromEntry) -> None:
        if entry.node.window is not None:
            problem = f"'{entry.node.name}' is a table, and its rows are alive at all times"
            raise self.error(entry.node, problem, "leave out the window")
        if entry.kind in (RIGHT, FULL):
            problem = f"{entry.kind} JOIN with a table is not supported: its rows never end, so that none is ever alone"
            raise self.error(entry.node, problem, "write JOIN or LEFT JOIN")
        join = entry.join
        if join is not None and (join.args.get("using") or join.args.get("method")):
            raise self.error(entry.node, "tables are joined with ON", "write JOIN .. ON a.k = t.k")

    def owners(self, condition: exp.Expr) -> frozenset[str]:
        """The aliases of the entries whose columns a condition reads."""
        owners = (self.owner(column) for column in condition.find_all(exp.Column))
        return frozenset(owner for owner in owners if owner is not None)

    def owner(self, column: exp.Column) -> str | None:
        """The alias of the entry of FROM that a column belongs to; None if the query is to find it, or to refuse it."""
        tested = _tested_table(column)
        if column.table:
            if tested is not None and match_name(column.table, [tested.alias_or_name]):
                return None
            matches = match_name(column.table, [entry.alias for entry in self.all])
            if len(matches) != 1:
                return None
            self._check_column(column, matches[0])
            return matches[0]
        if tested is not None:
            relation = self._scope.find(tested.name)
            if relation is not None and match_name(column.name, relation.schema.names):
                return None
        join = column.find_ancestor(exp.Join)
        visible = [entry for entry in self.all if entry.is_shown or entry.join is join]
        owners = [entry for entry in visible if match_name(column.name, entry.relation.schema.names)]
        if len(owners) > 1 and any(entry.is_table for entry in owners):
            problem = f"column '{column.name}' is in several of {', '.join(entry.alias for entry in owners)}"
            hint = f"say which: {' or '.join(f'{entry.alias}.{column.name}' for entry in owners)}"
            raise self.error(column, problem, hint)
        return owners[0].alias if len(owners) == 1 else None

    def _check_column(self, column: exp.Column, alias: str) -> None:
        """Refuse a column that a table does not have; those of streams are checked when the query is bound."""
        entry = next(entry for entry in self.all if entry.alias == alias)
        names = entry.relation.schema.names
        if entry.is_table and not isinstance(column.this, exp.Star) and len(match_name(column.name, names)) != 1:
            problem = f"table '{alias}' has no column '{column.name}'"
            raise self.error(column, problem, did_you_mean(column.name, names))

    def error(self, node: exp.Expr, problem: str, hint: str) -> QueryError:
        return QueryError(problem, self._text, span_of(node), hint)


def _kind(join: exp.Join) -> str:
    side, kind = (str(join.args.get(key) or "").upper() for key in ("side", "kind"))
    return _KINDS.get((side, kind), side or INNER)


def _tested_table(column: exp.Column) -> StreamTable | None:
    """The stream of the EXISTS or IN that a column stands in."""
    select = column.find_ancestor(exp.Select)
    if select is None or select.find_ancestor(exp.Exists, exp.In) is None:
        return None
    origin = select.args.get("from_")
    table = None if origin is None else origin.this
    return table if isinstance(table, StreamTable) else None


def column_node(alias: str, name: str, span: Span | None) -> exp.Column:
    """A column of an entry, in quotes, which stands in the text at `span`."""
    column = exp.column(exp.to_identifier(name, quoted=True), exp.to_identifier(alias, quoted=True))
    if span is not None:
        column.meta[SPAN] = span
        for part in column.parts:
            part.meta.update(start=span.start, end=span.end - 1)  # As sqlglot notes them.
    return column
