"""Set difference in the text: EXCEPT is another way to write NOT EXISTS, and is turned into it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from braid.errors import QueryError
from braid.language.dialect import PLACE, StreamTable, parse_statement
from braid.language.grouping import is_grouped
from braid.language.refusal import place_of, refuse_clauses

EXAMPLE = "NOT EXISTS (SELECT * FROM b [RANGE 5 MINUTES] WHERE b.k = a.k)"


def parse_select(text: str) -> exp.Select:
    """The syntax tree of the query that a text holds, without EXCEPT.

    >>> print(parse_select("SELECT a.k FROM a [NOW] EXCEPT SELECT k FROM b [NOW]").sql(dialect="braid"))
    SELECT a.k FROM a [NOW] WHERE NOT EXISTS(SELECT * FROM b [NOW] WHERE a.k = b.k)
    """
    return _select(parse_statement(text), text)


def conditions_apart(condition: exp.Expr) -> tuple[list[exp.Expr], list[exp.Select]]:
    """What stands between the ANDs of a condition: plain conditions, and the subqueries of NOT EXISTS."""
    if condition.find(exp.Exists) is None:
        return [condition], []
    plain: list[exp.Expr] = []
    excluded: list[exp.Select] = []
    for part in _conjuncts(condition):
        subquery = _excluded(part)
        if subquery is None:
            plain.append(part)
        else:
            excluded.append(subquery)
    return plain, excluded


def _conjuncts(condition: exp.Expr) -> Iterator[exp.Expr]:
    condition = condition.unnest()
    if isinstance(condition, exp.And):
        for part in condition.flatten(unnest=False):
            yield from _conjuncts(part)
    else:
        yield condition


def _excluded(condition: exp.Expr) -> exp.Select | None:
    exists = condition.this.unnest() if isinstance(condition, exp.Not) else None
    found = exists.this if isinstance(exists, exp.Exists) else None
    return found if isinstance(found, exp.Select) else None


def _select(statement: exp.Expr, text: str) -> exp.Select:
    while isinstance(statement, exp.Subquery | exp.Paren):
        refuse_clauses(statement, frozenset({"this"}), text)
        statement = statement.this
    if isinstance(statement, exp.Except):
        return _without(statement, text)
    if isinstance(statement, exp.Select):
        return statement
    raise QueryError(f"{statement.key.upper()} is not supported", text, hint="run its parts as two queries")


def _without(statement: exp.Except, text: str) -> exp.Select:
    """The left side of EXCEPT, where no row of the right side has the same values."""
    refuse_clauses(statement, frozenset({"this", "expression", "distinct"}), text)
    left = _select(statement.this, text)
    right = statement.expression
    if isinstance(right.unnest(), exp.Except):
        problem = "EXCEPT within the right side of EXCEPT is not supported"
        raise QueryError(problem, text, place_of(right), "take away one after the other: a EXCEPT b EXCEPT c")
    right = _select(right, text)
    _refuse_words(statement, right, text)
    for side in (left, right):
        if is_grouped(side):
            raise QueryError(
                "groups cannot stand beside EXCEPT", text, place_of(side), f"group the results, with {EXAMPLE}"
            )
    values = [_values(side, text) for side in (left, right)]
    if len(values[0]) != len(values[1]):
        raise QueryError(
            f"EXCEPT compares {len(values[0])} with {len(values[1])} columns",
            text,
            place_of(right),
            "select as many on both sides",
        )
    equalities = [_equal(*pair) for pair in zip(*values, strict=True)]
    inner = right.copy()
    inner.set("expressions", [exp.Star()])
    inner.where(*equalities, copy=False)
    return left.where(exp.Not(this=exp.Exists(this=inner)), copy=False)


def _refuse_words(statement: exp.Except, right: exp.Select, text: str) -> None:
    place = place_of(right)
    before = text[: place.start] if place else text
    word = "ALL" if not statement.args.get("distinct") else "DISTINCT"
    if word == "ALL" or re.search(r"\b(EXCEPT|MINUS)\s+DISTINCT\b[\s(]*SELECT\s*$", before, re.IGNORECASE):
        raise QueryError(
            f"EXCEPT {word} is not supported",
            text,
            place,
            "write EXCEPT: of the left side, each result stays that has no equal on the right at its time",
        )


def _values(side: exp.Select, text: str) -> list[exp.Expr]:
    """What a side selects, each column with its stream."""
    aliases = [table.alias_or_name for table in _tables(side)]
    values = []
    for projection in side.expressions:
        if projection.find(exp.Star) is not None:
            raise QueryError(
                "EXCEPT compares columns by their place, so * is not enough",
                text,
                place_of(projection),
                "name the columns on both sides",
            )
        values.append(projection.unalias().copy())
    for value in values:
        _own(value, aliases, text)
    if side.args.get("where") is not None:
        _own(side.args["where"], aliases, text)
    return values


def _own(expression: exp.Expr, aliases: list[str], text: str) -> None:
    """Say of every column which of some streams it belongs to: beside those of the other side, it would be unclear."""
    for column in list(expression.find_all(exp.Column)):
        if column.find_ancestor(exp.Exists) is not None:
            continue
        if not column.table and len(aliases) == 1:
            column.set("table", exp.to_identifier(aliases[0]))
        elif not column.table:
            raise QueryError(
                f"which stream does column '{column.name}' belong to?",
                text,
                place_of(column),
                f"write it as stream.{column.name}",
            )
        elif column.table.casefold() not in (alias.casefold() for alias in aliases):
            raise QueryError(
                f"'{column.table}' is not a stream of this side of EXCEPT",
                text,
                place_of(column),
                f"to compare with the other side, write {EXAMPLE}",
            )


def _tables(side: exp.Select) -> Iterator[StreamTable]:
    origin = side.args.get("from_")
    if origin is not None:
        yield from _joined(origin.this, *(join.this for join in side.args.get("joins") or ()))


def _joined(*tables: exp.Expr) -> Iterator[StreamTable]:
    """The streams of some entries of FROM: each, and what is joined to it, in brackets or not."""
    for table in tables:
        if isinstance(table, exp.Subquery):
            yield from _joined(table.this)
        elif isinstance(table, StreamTable):
            yield table
        yield from _joined(*(join.this for join in table.args.get("joins") or ()))


def _equal(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    equality = exp.EQ(this=_bracketed(left), expression=_bracketed(right))
    place = place_of(right)
    if place is not None:
        equality.meta[PLACE] = place
    return equality


def _bracketed(value: exp.Expr) -> exp.Expr:
    """The tree must mean the same when it is written out, as for the oracle: `(a.x OR a.y) = b.z`."""
    return value if isinstance(value, exp.Column | exp.Literal) else exp.Paren(this=value)
