"""The views of a statement as nodes of its tree: where they stand, and how they are named."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from sqlglot import exp

from braid.errors import QueryError
from braid.language.nodes import StreamTable, span_of
from braid.language.refusal import keyword_span
from braid.language.top_n import is_part_of_ranking


def definitions(clause: exp.Expr | None, text: str) -> Iterator[exp.CTE]:
    """The definitions of a WITH clause."""
    if clause is None:
        return
    if clause.args.get("recursive"):
        span = keyword_span("RECURSIVE", clause.expressions, text)
        raise QueryError("WITH RECURSIVE is not supported", text, span, "a stream has no end to repeat for")
    for definition in clause.expressions:
        if not isinstance(definition, exp.CTE) or definition.args["alias"].args.get("columns"):
            hint = "name the columns in the SELECT: SELECT x AS y"
            raise QueryError("WITH name (columns) is not supported", text, span_of(definition), hint)
        yield definition


def name_views(statement: exp.Select, text: str) -> tuple[str, ...]:
    """Leave the names of the views of a statement in their places, without defining them; returns the names."""
    names = [f"{definition.alias} (WITH)" for definition in definitions(statement.args.get("with_"), text)]
    statement.set("with_", None)
    for table in outermost_views(statement):
        names.append(f"{table.alias_or_name} ({view_kind(table)})")
        put_name(table, names[-1])
    return tuple(names)


def outermost_views(statement: exp.Expr) -> list[StreamTable]:
    """The entries of FROM that are views, and not within the SELECT of another."""
    tables = [table for table in statement.find_all(StreamTable, bfs=False) if is_view(table)]
    return [table for table in tables if not any(map(is_view, ancestors(table)))]


def ancestors(node: exp.Expr) -> Iterator[exp.Expr]:
    """The nodes that a node stands in, from the inside to the outside."""
    while node.parent is not None:
        node = node.parent
        yield node


def is_view(node: exp.Expr) -> bool:
    """Whether an entry of FROM is a SELECT or a window function."""
    return isinstance(node, StreamTable) and bool(node.args.get("select") or node.args.get("function"))


def view_kind(table: StreamTable) -> str:
    """What a view in FROM is written as."""
    if table.function is None:
        return "SELECT"
    return "TUMBLE" if table.function.slide == table.function.size else "HOP"


def put_name(table: StreamTable, name: str) -> None:
    """Put the name of a view in its place in FROM."""
    alias = exp.TableAlias(this=exp.to_identifier(table.alias_or_name, quoted=True))
    table.set("select", None)
    table.set("function", None)
    table.set("this", exp.to_identifier(name, quoted=True))
    table.set("alias", alias)


def has_windows(select: exp.Select) -> bool:
    """Whether a stream of FROM has a window, so that the SELECT is a query of Braid's."""
    clauses = [clause for clause in (select.args.get("from_"), *(select.args.get("joins") or ())) if clause is not None]
    tables = chain.from_iterable(_entries(clause.this) for clause in clauses)
    return any(table.window is not None or _ranks_windows(table) for table in tables)


def _ranks_windows(table: StreamTable) -> bool:
    return is_part_of_ranking(table) and has_windows(table.args["select"].unnest())


def _entries(table: exp.Expr) -> Iterator[StreamTable]:
    if isinstance(table, StreamTable):
        yield table
    elif isinstance(table, exp.Paren | exp.Subquery):
        yield from _entries(table.this)
    for join in table.args.get("joins") or ():
        yield from _entries(join.this)


def union_sides(union: exp.Expr) -> Iterator[exp.Expr]:
    """The SELECTs of a UNION ALL of any number of them."""
    union = union.unnest()
    if isinstance(union, exp.Union) and not union.args.get("distinct"):
        yield from union_sides(union.this)
        yield from union_sides(union.expression)
    else:
        yield union
