"""A stream with the tables that are attached to it, as a view; the query reads the tables' columns from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from braid.language.from_entries import INNER, Entries, FromEntry, column_node
from braid.language.nodes import SPAN, StreamTable, span_of
from braid.language.resolving import match_name
from braid.language.views import RowsView, Scope
from braid.model.stream import Stream
from braid.model.table import Table

Names = Mapping[tuple[str, str], str]
"""The names of the tables' columns in a view, by the alias of the table and the column."""


def expand_stars(statement: exp.Select, entries: Entries) -> None:
    """Replace * and x.* by the columns they stand for: later, columns of tables are columns of streams."""
    projections: list[exp.Expr] = []
    for projection in statement.expressions:
        star = projection.this if isinstance(projection, exp.Column) else projection
        shown = [entry for entry in entries.all if entry.is_shown]
        qualifier = projection.args.get("table") if isinstance(star, exp.Star) else None
        if qualifier is not None:
            matches = match_name(qualifier.name, [entry.alias for entry in shown])
            shown = [entry for entry in shown if entry.alias in matches]
        if not isinstance(star, exp.Star) or not shown:
            projections.append(projection)
            continue
        for entry in shown:
            for name in entry.relation.schema.names:
                column = column_node(entry.alias, name, span_of(projection))
                projections.append(exp.alias_(column, name, quoted=True))
    statement.set("expressions", projections)


def define_view(stream: FromEntry, tables: Sequence[FromEntry], scope: Scope) -> Names:
    """Define a stream with its tables as a view, which takes its place in FROM."""
    assert isinstance(stream.relation, Stream)
    name = scope.view_name(stream.alias, f"with {', '.join(entry.alias for entry in tables)}")
    names = _column_names(stream.relation, tables)
    columns: list[exp.Expr] = [column_node(stream.alias, column, None) for column in stream.relation.schema.names]
    columns += [exp.alias_(column_node(*origin, None), column, quoted=True) for origin, column in names.items()]
    # Inner joins first: outer, semi and anti joins may read columns of their tables.
    joins = [_join(entry) for entry in sorted(tables, key=lambda entry: entry.kind != INNER)]
    select = exp.Select(expressions=columns, from_=exp.From(this=_table(stream)), joins=joins)
    select.meta[SPAN] = span_of(stream.node)
    read = tuple(entry.relation for entry in tables if isinstance(entry.relation, Table))
    scope.define(RowsView(name, stream.relation, read, select, stream.relation.time, scope.text))
    stream.node.set("this", exp.to_identifier(name, quoted=True))
    stream.node.set("alias", exp.TableAlias(this=exp.to_identifier(stream.alias, quoted=True)))
    return names


def _column_names(stream: Stream, tables: Sequence[FromEntry]) -> Names:
    """The columns of tables are called `alias.column`, unless the stream has such a column."""
    taken = {name.casefold() for name in stream.schema.names}
    names: dict[tuple[str, str], str] = {}
    for entry in tables:
        for column in entry.relation.schema.names if entry.is_shown else ():
            name = f"{entry.alias}.{column}"
            while name.casefold() in taken:
                name += "_"
            taken.add(name.casefold())
            names[entry.alias, column] = name
    return names


def rename_columns(
    statement: exp.Select, entries: Entries, hosts: Mapping[str, str], names: Mapping[str, Names]
) -> None:
    """Let a statement read the columns of tables from the streams that they are attached to (`hosts`, by alias)."""
    for column in list(statement.find_all(exp.Column)):
        owner = entries.owner(column)
        if owner is None or owner not in hosts:
            continue
        entry = next(entry for entry in entries.tables if entry.alias == owner)
        if not entry.is_shown:
            hint = "its own ON: write conditions there; to select its columns, use JOIN"
            hint = f"{entry.kind} JOIN shows it only to {hint}"
            raise entries.error(column, f"'{owner}' cannot be used here", hint)
        (name,) = match_name(column.name, entry.relation.schema.names)
        replacement = column_node(hosts[owner], names[hosts[owner]][owner, name], span_of(column))
        is_output = column.parent is statement and column.arg_key == "expressions"
        column.replace(exp.alias_(replacement, column.name, quoted=True) if is_output else replacement)


def _table(entry: FromEntry) -> StreamTable:
    alias = exp.TableAlias(this=exp.to_identifier(entry.alias, quoted=True))
    table = StreamTable(this=exp.to_identifier(entry.relation.name, quoted=True), alias=alias)
    span = span_of(entry.node)
    if span is not None:
        table.meta[SPAN] = span
    return table


def _join(entry: FromEntry) -> exp.Join:
    condition = all_of(entry.conditions)
    side, _, kind = entry.kind.partition(" ")
    if entry.kind == INNER:
        side, kind = "", "" if condition is not None else "CROSS"
    return exp.Join(this=_table(entry), side=side or None, kind=kind or None, on=condition)


def all_of(conditions: list[exp.Expr]) -> exp.Expr | None:
    """The conditions with AND between them; None for none."""
    together: exp.Expr | None = None
    for condition in conditions:
        bracketed = exp.Paren(this=condition.copy()) if isinstance(condition, exp.Or) else condition.copy()
        together = bracketed if together is None else exp.And(this=together, expression=bracketed)
    return together
