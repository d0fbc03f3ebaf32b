"""`read`: a text to a bound query whose streams are all declared. Views in the text are defined on the way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from braid.errors import QueryError
from braid.language.attached_tables import expand_stars
from braid.language.binding import bind as bind_plain
from braid.language.binding import check_relations
from braid.language.existence import parse_select
from braid.language.free_names import event_time_name
from braid.language.from_entries import Entries
from braid.language.host_types import HostTypes, RecordedTypes
from braid.language.nodes import StreamTable, span_of
from braid.language.parsing import read_query
from braid.language.row_binding import bind_rows
from braid.language.syntax_errors import first_word
from braid.language.table_joins import attach_tables
from braid.language.top_n import merged, rank_by_windows, rank_levels, rank_nodes, with_inlined_ranks
from braid.language.view_nodes import is_view, name_views
from braid.language.views import (
    BoundQuery,
    Define,
    FunctionView,
    QueryView,
    Relations,
    RowsView,
    Scope,
    UnionView,
    View,
)
from braid.language.window_groups import group_by_windows
from braid.model.expressions.expression import Column
from braid.model.expressions.typing import type_of
from braid.model.query import Output, Query
from braid.model.stream import Branch, Stream
from braid.model.table import Table
from braid.model.window_function import WINDOW_END, WINDOW_START


def parse(text: str, streams: Relations | None = None, host: HostTypes | None = None) -> Query:
    """The query of a text, bound to `streams` if they are given. Any error in it is a `QueryError`.

    With a `host`, the query may have expressions that the host computes.

    >>> query = parse("SELECT b.price FROM bids [RANGE 5 MINUTES] AS b WHERE b.price > 10")
    >>> print(query.sources[0], "|", query.predicates[0])
    bids [RANGE 5 MINUTES] AS b | b.price > 10
    """
    if streams is not None:
        return read(text, streams, declared_stream, host).query
    with _errors_of(text):
        levels = rank_levels(with_inlined_ranks(parse_select(text)))
        *around, statement = levels
        if rank_nodes(statement) or around:
            rank_by_windows(statement, text)
            group_by_windows(statement, text)
        views = [name for level in around for name in name_views(level, text)]
        views += name_views(statement, text)
        statement = merged(levels, text)
        return replace(read_query(statement, text, hosted=host is not None), views=tuple(views))


def bind(query: Query, streams: Relations, host: HostTypes | None = None) -> Query:
    """The same query with its streams declared, its columns and stars resolved and its types checked.

    `streams` maps the names of FROM to their declarations. `host` knows the types of what the host computes. A
    `QueryError` says what does not fit, and where.
    """
    return read(query.text, streams, declared_stream, host).query if query.views else bind_plain(query, streams, host)


@contextmanager
def _errors_of(text: str) -> Iterator[None]:
    """Let errors of the query as a whole point at its beginning."""
    try:
        yield
    except RecursionError:
        raise QueryError("the query is nested too deeply", text, first_word(text), "simplify it") from None
    except QueryError as problem:
        if problem.span is not None or not problem.text:
            raise
        raise QueryError(problem.problem, text, first_word(text), problem.hint) from None


def read(text: str, relations: Relations, define: Define, host: HostTypes | None = None) -> BoundQuery:
    """Read a text over declared streams and tables. `define` makes the views of the text."""
    check_relations(relations)
    with _errors_of(text):
        return _read(parse_select(text), Scope(text, relations, define, _read, host))


def _read(statement: exp.Select, scope: Scope) -> BoundQuery:
    levels = rank_levels(with_inlined_ranks(statement))
    for level in levels[:-1]:
        scope.take_definitions(level)
    statement = levels[-1]
    # In the order of the text, because streams are read when they are first looked for.
    names = dict.fromkeys(table.name for table in statement.find_all(StreamTable, bfs=False))
    is_plain = len(levels) == 1 and not (
        statement.args.get("with_")
        or any(map(is_view, statement.find_all(StreamTable)))
        or any(isinstance(scope.find(name), Table) for name in names)
    )
    rank_by_windows(statement, scope.text)
    group_by_windows(statement, scope.text)
    scope.take_views(statement)
    attach_tables(statement, scope)
    if len(levels) > 1:
        if any(item.is_star for item in statement.expressions):
            expand_stars(statement, Entries(statement, scope))
        statement = merged(levels, scope.text)
    query = read_query(statement, scope.text, hosted=scope.host is not None)
    host = None if scope.host is None else RecordedTypes(scope.host)
    bound = replace(bind_plain(query, scope.relations, host), views=tuple(scope.views))
    if is_plain and scope.is_outermost:
        return BoundQuery(bound, scope.text, scope.relations, host.given if host else {})
    _name_outputs(statement, query)
    _keep_literals(statement, scope.text)
    text = statement.sql(dialect="braid")
    again = bind_plain(read_query(parse_select(text), text, hosted=host is not None), scope.relations, host)
    again = replace(again, text=bound.text, views=bound.views)
    if again != bound and not _is_hosted(bound):
        raise QueryError("this query cannot be written without its views", scope.text, hint=f"it would be {text}")
    # Expressions of the host have the text that they are computed from, which is now this one.
    return BoundQuery(again if _is_hosted(bound) else bound, text, scope.relations, host.given if host else {})


def _is_hosted(query: Query) -> bool:
    """Whether the host computes anything for a query."""
    projects = query.projection is not None or (query.grouping is not None and query.grouping.projection is not None)
    return projects or any(source.computed for source in query.inputs)


def _name_outputs(statement: exp.Select, query: Query) -> None:
    """Give every column of the result the name that it has in the text."""
    outputs = query.outputs if query.grouping is None else query.grouping.outputs
    outputs = outputs if query.ranking is None else query.ranking.outputs
    for projection, output in zip(statement.expressions, outputs, strict=True):
        if isinstance(output, Output) and not isinstance(projection, exp.Alias):
            projection.replace(exp.alias_(projection.copy(), output.name, quoted=True))


def _keep_literals(statement: exp.Select, text: str) -> None:
    """Write constants such as 5L and DATE '2024-01-31' as in the text: sqlglot would write them as casts."""
    for cast in list(statement.find_all(exp.Cast)):
        span = span_of(cast)
        if isinstance(cast.this, exp.Literal) and span is not None:
            cast.replace(exp.var(text[span.start : span.end]))


def declared_stream(view: View) -> Stream:
    """The stream that a view is, by the types of its expressions."""
    match view:
        case RowsView():
            return bind_rows(view).result
        case FunctionView():
            return function_stream(view)
        case UnionView():
            return union_stream(view)
        case QueryView():
            return query_stream(view)


def function_stream(view: FunctionView) -> Stream:
    kind = pa.timestamp("us", view.stream.schema.field(view.stream.time).type.tz)
    schema = view.stream.schema.append(pa.field(WINDOW_START, kind)).append(pa.field(WINDOW_END, kind))
    return replace(view.stream, name=view.name, schema=schema)


def union_stream(view: UnionView) -> Stream:
    """The columns of the first stream. Rows are late if they are late for the slowest of the streams."""
    first = view.streams[0]
    branches = tuple(Branch(stream.name, stream.lateness) for stream in view.streams)
    return replace(first, name=view.name, lateness=max(branch.lateness for branch in branches), branches=branches)


def query_stream(view: QueryView) -> Stream:
    """The results of a query with their event time as one more column."""
    query = view.bound.query
    if query.grouping is not None or query.ranking is not None:
        problem = f"{'ranks' if query.grouping is None else 'groups'} in FROM are for Spark"
        raise QueryError(problem, query.text, view.span, "run the SELECT on its own, and give its result as a stream")
    schemas: Mapping[str, pa.Schema] = {source.alias: source.declared.schema for source in query.inputs}

    def column_type(column: Column) -> pa.DataType:
        return schemas[column.source or ""].field(column.name).type

    fields = [
        pa.field(output.name, type_of(output.expression, column_type))
        for output in query.outputs
        if isinstance(output, Output)
    ]
    time = event_time_name(query)
    fields.append(pa.field(time, pa.timestamp("us", "UTC")))
    return Stream(view.name, pa.schema(fields), time)
