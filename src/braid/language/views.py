"""Views: streams that the text itself makes of others, by a SELECT in FROM, by WITH, or by a window function.

`Scope` takes them out of a statement, the innermost first, so that what is left names declared streams only. A host
says how each is made: it *defines* the view and returns the declaration of its stream.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
from sqlglot import exp

from braid.errors import QueryError, Span, did_you_mean
from braid.language.free_names import free_name
from braid.language.grouping import is_grouped
from braid.language.host_types import HostTypes
from braid.language.nodes import StreamTable, span_of
from braid.language.refusal import is_unstable, refuse_clauses, unsupported_expression
from braid.language.resolving import match_name
from braid.language.top_n import rank_by_windows
from braid.language.view_nodes import definitions, has_windows, outermost_views, put_name, union_sides, view_kind
from braid.model.output import EVENT_TIME_COLUMN
from braid.model.query import Query
from braid.model.stream import Stream
from braid.model.table import Table
from braid.model.window_function import WINDOW_END, WINDOW_START, WindowFunction

Relations = Mapping[str, Stream | Table]
"""The declared streams and tables by name."""

_CLAUSES_OF_ROWS = frozenset({"expressions", "from_", "joins", "where"})


@dataclass(frozen=True)
class BoundQuery:
    """A bound query. `text` says the same in a text without views and tables, over `relations` alone.

    `host_types` are the types of what the host computes for it, by the text of each expression.
    """

    query: Query
    text: str
    relations: Relations
    host_types: Mapping[str, pa.DataType]

    @property
    def streams(self) -> tuple[Stream, ...]:
        """The streams that the query reads, each once, in the order of the text."""
        return tuple(dict.fromkeys(source.plain_declaration for source in self.query.inputs))


@dataclass(frozen=True)
class RowsView:
    """A SELECT over one stream and any number of tables: each row of the stream gives some rows of the view.

    `select` names the stream and the tables without windows; `time` is the event time among its columns.
    """

    name: str
    stream: Stream
    tables: tuple[Table, ...]
    select: exp.Select
    time: str
    text: str = field(repr=False)

    @property
    def span(self) -> Span | None:
        return span_of(self.select)


@dataclass(frozen=True)
class FunctionView:
    """A stream with the windows that a function puts its rows into."""

    name: str
    stream: Stream
    function: WindowFunction


@dataclass(frozen=True)
class UnionView:
    """All rows of several streams, whose columns have the same types in the same order."""

    name: str
    streams: tuple[Stream, ...]


@dataclass(frozen=True)
class QueryView:
    """The results of a query of its own."""

    name: str
    bound: BoundQuery
    span: Span | None


View = RowsView | FunctionView | UnionView | QueryView
Define = Callable[[View], Stream]
"""Makes a view, and returns the stream that it is."""

Read = Callable[[exp.Select, "Scope"], BoundQuery]
"""Reads a statement whose streams and tables a scope knows."""


class Scope:
    """The streams and tables that a statement can name.

    Every view has a name that no other stream has: the names of views within a view begin with the name of that. `host`
    knows the types of what the host computes.
    """

    def __init__(
        self,
        text: str,
        relations: Relations,
        define: Define,
        read: Read,
        host: HostTypes | None = None,
        outer: Scope | None = None,
    ) -> None:
        self.text = text
        self.host = host
        self.views: dict[str, Stream] = {}
        """The views that were defined here, by their own names."""
        self.relations: Relations = ChainMap(self.views, relations)  # type: ignore[arg-type]
        self._named: dict[str, Stream] = {} if outer is None else dict(outer._named)
        """The views that WITH defines, by the names that it gives them."""
        self._define = define
        self._read = read
        self._path = ""

    def find(self, name: str) -> Stream | Table | None:
        """The stream or table that a name stands for; None if there is no single one."""
        # A view hides a stream of the same name, also in another case.
        for known in (self._named, self.relations):
            matches = match_name(name, known)
            if matches:
                return known[matches[0]] if len(matches) == 1 else None
        return None

    @property
    def is_outermost(self) -> bool:
        """Whether its statement is the whole text."""
        return not self._path

    def define(self, view: View) -> Stream:
        self.views[view.name] = self._define(view)
        return self.views[view.name]

    def view_name(self, name: str, kind: str) -> str:
        """The name of a view that the text calls `name`."""
        full = f"{self._path}{name} ({kind})"
        if full in self.views:
            raise QueryError(f"two views are called '{name}'", self.text, None, "give one of them another name")
        return full

    def take_views(self, statement: exp.Select) -> None:
        """Define the views of a statement, and leave their names in their places."""
        self.take_definitions(statement)
        for table in outermost_views(statement):
            name = self.view_name(table.alias_or_name, view_kind(table))
            if table.function is not None:
                self._define_function(name, table, table.function)
            else:
                self._define_select(name, table.args["select"])
            put_name(table, name)
        for table in statement.find_all(StreamTable):
            matches = match_name(table.name, self._named)
            if matches:
                put_name(table, self._named[matches[0]].name)

    def take_definitions(self, statement: exp.Select) -> None:
        """Define the views of the WITH of a statement."""
        for definition in definitions(statement.args.get("with_"), self.text):
            view = self._define_select(self.view_name(definition.alias, "WITH"), definition.this)
            self._named[definition.alias] = view
        statement.set("with_", None)

    def _define_select(self, name: str, select: exp.Expr) -> Stream:
        # A copy stands on its own: nothing in it is within the view any more.
        select = select.unnest().copy()
        if isinstance(select, exp.Union) and not select.args.get("distinct"):
            refuse_clauses(select, frozenset({"this", "expression", "distinct"}), self.text)
            return self._define_union(name, select)
        if not isinstance(select, exp.Select):
            problem = f"{select.key.upper()} in FROM is not supported"
            raise QueryError(problem, self.text, span_of(select), "write SELECT, or SELECT .. UNION ALL SELECT ..")
        inner = Scope(self.text, self.relations, self._define, self._read, self.host, self)
        inner._path = f"{name}: "
        if has_windows(select):
            return self.define(QueryView(name, self._read(select, inner), span_of(select)))
        return self.define(inner._rows_view(name, select))

    def _rows_view(self, name: str, select: exp.Select) -> RowsView:
        if is_grouped(select):
            problem = "a SELECT in FROM that groups needs a window after its stream"
            hint = "a row counts once: FROM bids [NOW] GROUP BY auction, WINDOW(event_time, '10 seconds')"
            raise QueryError(problem, self.text, span_of(select), hint)
        rank_by_windows(select, self.text)
        self.take_views(select)
        refuse_clauses(select, _CLAUSES_OF_ROWS, self.text)
        for test in select.find_all(exp.Exists, exp.Subquery, exp.Window):
            hint = "test it in the query around this SELECT" if isinstance(test, exp.Exists) else "write it out"
            problem = "a SELECT in FROM over one stream has no subqueries and no window functions"
            raise QueryError(problem, self.text, span_of(test), hint)
        for call in select.find_all(exp.Func):
            if is_unstable(call, self.text):
                raise unsupported_expression(call, self.text, [])
        stream, alias, tables = self._stream_of(select)
        return RowsView(name, stream, tables, select, with_event_time(select, alias, stream), self.text)

    def _stream_of(self, select: exp.Select) -> tuple[Stream, str, tuple[Table, ...]]:
        """The only stream of a SELECT, its alias, and the tables that it is joined with."""
        streams: list[tuple[Stream, str]] = []
        tables: list[Table] = []
        for entry in select.find_all(StreamTable):
            relation = self.find(entry.name)
            if relation is None:
                hint = did_you_mean(entry.name, self.relations)
                raise QueryError(f"there is no stream '{entry.name}'", self.text, span_of(entry), hint)
            if isinstance(relation, Table):
                tables.append(relation)
            else:
                streams.append((relation, entry.alias_or_name))
            entry.set("this", exp.to_identifier(relation.name, quoted=True))
            entry.set("alias", exp.TableAlias(this=exp.to_identifier(entry.alias or entry.name, quoted=True)))
        if select.args.get("from_") is None:
            raise QueryError(
                "this SELECT has no FROM", self.text, span_of(select), "name its stream: SELECT .. FROM bids"
            )
        if len(streams) != 1:
            problem = f"this SELECT reads {len(streams)} streams without windows, and can read one"
            hint = "streams are joined through windows: FROM a [RANGE 5 MINUTES] JOIN b [RANGE 5 MINUTES] ON .."
            raise QueryError(problem, self.text, span_of(select), hint)
        return (*streams[0], tuple(tables))

    def _define_union(self, name: str, union: exp.Union) -> Stream:
        sides = list(union_sides(union))
        streams = tuple(self._define_select(f"{name} {number}", side) for number, side in enumerate(sides, 1))
        first = streams[0]
        for stream, side in zip(streams[1:], sides[1:], strict=True):
            _check_same_columns(first, stream, span_of(side), self.text)
        return self.define(UnionView(name, streams))

    def _define_function(self, name: str, table: StreamTable, function: WindowFunction) -> Stream:
        relation = self.find(table.name)
        if not isinstance(relation, Stream):
            hint = did_you_mean(table.name, self.relations)
            raise QueryError(f"there is no stream '{table.name}'", self.text, span_of(table), hint)
        if function.time is not None and match_name(function.time, [relation.time]) != [relation.time]:
            problem = f"DESCRIPTOR({function.time}): the event time of stream '{relation.name}' is '{relation.time}'"
            raise QueryError(problem, self.text, span_of(table), f"write DESCRIPTOR({relation.time})")
        for column in (WINDOW_START, WINDOW_END):
            if match_name(column, relation.schema.names):
                problem = f"stream '{relation.name}' has a column '{column}', which the window function adds"
                raise QueryError(problem, self.text, span_of(table), "rename it before the query")
        return self.define(FunctionView(name, relation, function))


def with_event_time(select: exp.Select, alias: str, stream: Stream) -> str:
    """The column of a SELECT that is the event time of its stream; added under a free name if there is none."""
    for projection in select.expressions:
        value = projection.unalias()
        star = value.this if isinstance(value, exp.Column) else value
        is_ours = not isinstance(value, exp.Column) or not value.table or value.table.casefold() == alias.casefold()
        if isinstance(star, exp.Star) and is_ours:
            return stream.time
        if isinstance(value, exp.Column) and is_ours and match_name(value.name, [stream.time]):
            return str(projection.alias_or_name)
    name = free_name(EVENT_TIME_COLUMN, [projection.alias_or_name for projection in select.expressions])
    time = exp.column(exp.to_identifier(stream.time, quoted=True), exp.to_identifier(alias, quoted=True))
    select.select(exp.alias_(time, name, quoted=True), copy=False)
    return name


def _check_same_columns(first: Stream, other: Stream, span: Span | None, text: str) -> None:
    if len(first.schema) != len(other.schema):
        problem = f"UNION ALL of {len(first.schema)} and {len(other.schema)} columns (with the event time)"
        raise QueryError(problem, text, span, "select the same columns on all sides, the event time among them")
    for one, another in zip(first.schema, other.schema, strict=True):
        if one.type != another.type:
            problem = f"UNION ALL: column '{one.name}' is {one.type} and here {another.type}"
            raise QueryError(problem, text, span, f"CAST one of them: CAST({another.name} AS ..)")
        if (one.name == first.time) != (another.name == other.time):
            problem = f"UNION ALL: the event times '{first.time}' and '{other.time}' are different columns"
            raise QueryError(problem, text, span, "select them at the same position on all sides")
