"""EXISTS, IN and EXCEPT in the tree: EXCEPT is rewritten to NOT EXISTS, and tests are found among conditions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sqlglot import exp

from braid.errors import QueryError
from braid.language.dialect import parse_statement
from braid.language.grouping import is_grouped
from braid.language.hopping import compare_windows
from braid.language.nodes import SPAN, StreamTable, conjuncts_of, span_of
from braid.language.refusal import refuse_clauses

EXAMPLE = "NOT EXISTS (SELECT * FROM b [RANGE 5 MINUTES] WHERE b.k = a.k)"


def parse_select(text: str, compare: Callable[[exp.Expr, str], None] = compare_windows) -> exp.Select:
    """The syntax tree of a query text, with each EXCEPT rewritten to NOT EXISTS.

    `compare` adds to the statement that the windows of streams with `[HOP ..]` are the same; the oracle has its own.

    >>> print(parse_select("SELECT a.k FROM a [NOW] EXCEPT SELECT k FROM b [NOW]").sql(dialect="braid"))
    SELECT a.k FROM a [NOW] WHERE NOT EXISTS(SELECT * FROM b [NOW] WHERE a.k = b.k)
    """
    statement = parse_statement(text)
    compare(statement, text)
    return _select(statement, text)


@dataclass(frozen=True)
class WrittenTest:
    """An EXISTS (SELECT ..), or a `value` IN (SELECT ..), with or without NOT."""

    subquery: exp.Select
    negated: bool
    value: exp.Expr | None = None


def conditions_apart(condition: exp.Expr) -> tuple[list[exp.Expr], list[WrittenTest]]:
    """The operands of the ANDs of a condition: plain conditions, and existence tests."""
    if not any(map(is_test, condition.find_all(exp.Exists, exp.In))):
        return [condition], []
    plain: list[exp.Expr] = []
    tests: list[WrittenTest] = []
    for conjunct in conjuncts_of(condition):
        test = _test(conjunct)
        if test is None:
            plain.append(conjunct)
        else:
            tests.append(test)
    return plain, tests


def is_test(node: exp.Expr) -> bool:
    """Whether a node is EXISTS (SELECT ..) or IN (SELECT ..)."""
    return isinstance(node, exp.Exists) or (isinstance(node, exp.In) and node.args.get("query") is not None)


def members(test: WrittenTest, text: str) -> list[tuple[exp.Expr, exp.Expr]]:
    """The values that an IN compares, each with a column that its subquery selects; none for EXISTS."""
    if test.value is None:
        return []
    values = test.value.expressions if isinstance(test.value, exp.Tuple) else [test.value]
    columns = test.subquery.expressions
    if len(columns) != len(values) or any(column.is_star for column in columns):
        wanted = "one column" if len(values) == 1 else f"{len(values)} columns"
        hint = "name the column: x IN (SELECT b.k FROM b [RANGE 5 MINUTES])"
        if len(values) > 1:
            hint = "name as many columns: (x, y) IN (SELECT b.k, b.l FROM b [RANGE 5 MINUTES])"
        raise QueryError(f"the subquery of IN selects {wanted}", text, span_of(test.subquery), hint)
    return [(value, column.unalias()) for value, column in zip(values, columns, strict=True)]


def _test(condition: exp.Expr) -> WrittenTest | None:
    """The test that a condition is; None for any other condition."""
    negated = isinstance(condition, exp.Not)
    node = condition.this.unnest() if negated else condition
    if isinstance(node, exp.Exists) and isinstance(node.this, exp.Select):
        return WrittenTest(node.this, negated)
    if isinstance(node, exp.In) and is_test(node):
        subquery = node.args["query"].unnest()
        return WrittenTest(subquery, negated, node.this) if isinstance(subquery, exp.Select) else None
    return None


def _select(statement: exp.Expr, text: str) -> exp.Select:
    """A statement as one SELECT: without the brackets around it, and with EXCEPT rewritten."""
    while isinstance(statement, exp.Subquery | exp.Paren):
        refuse_clauses(statement, frozenset({"this"}), text)
        statement = statement.this
    if isinstance(statement, exp.Except):
        return _rewritten(statement, text)
    if isinstance(statement, exp.Select):
        return statement
    raise QueryError(f"{statement.key.upper()} is not supported", text, hint="run its parts as two queries")


def _rewritten(statement: exp.Except, text: str) -> exp.Select:
    """The left side of EXCEPT, with a NOT EXISTS of rows of the right side that have the same values."""
    refuse_clauses(statement, frozenset({"this", "expression", "distinct"}), text)
    left = _select(statement.this, text)
    right = statement.expression
    if isinstance(right.unnest(), exp.Except):
        problem = "EXCEPT within the right side of EXCEPT is not supported"
        raise QueryError(problem, text, span_of(right), "write them one after the other: a EXCEPT b EXCEPT c")
    right = _select(right, text)
    _refuse_all_and_distinct(statement, right, text)
    for side in (left, right):
        if is_grouped(side):
            raise QueryError(
                "EXCEPT cannot be combined with GROUP BY or aggregates",
                text,
                span_of(side),
                f"group the results, with {EXAMPLE}",
            )
    left_values = _values(left, text)
    right_values = _values(right, text)
    if len(left_values) != len(right_values):
        raise QueryError(
            f"EXCEPT compares {len(left_values)} with {len(right_values)} columns",
            text,
            span_of(right),
            "select as many on both sides",
        )
    equalities = [_equality(value, other) for value, other in zip(left_values, right_values, strict=True)]
    subquery = right.copy()
    subquery.set("expressions", [exp.Star()])
    subquery.where(*equalities, copy=False)
    return left.where(exp.Not(this=exp.Exists(this=subquery)), copy=False)


def _refuse_all_and_distinct(statement: exp.Except, right: exp.Select, text: str) -> None:
    """Refuse EXCEPT ALL and EXCEPT DISTINCT, which mean something else than EXCEPT over streams."""
    span = span_of(right)
    # sqlglot's tree is the same with and without DISTINCT, so the word is looked for in the text.
    before = text[: span.start] if span else text
    word = "ALL" if not statement.args.get("distinct") else "DISTINCT"
    if word == "ALL" or re.search(r"\b(EXCEPT|MINUS)\s+DISTINCT\b[\s(]*SELECT\s*$", before, re.IGNORECASE):
        raise QueryError(
            f"EXCEPT {word} is not supported",
            text,
            span,
            "write EXCEPT: it keeps each result of the left side that equals no row of the right side at its time",
        )


def _values(side: exp.Select, text: str) -> list[exp.Expr]:
    """The values that a side of EXCEPT selects, with a stream for each of their columns."""
    aliases = [table.alias_or_name for table in _tables(side)]
    values = []
    for projection in side.expressions:
        if projection.find(exp.Star) is not None:
            raise QueryError(
                "EXCEPT compares columns by position, so * is not allowed",
                text,
                span_of(projection),
                "name the columns on both sides",
            )
        values.append(projection.unalias().copy())
    for value in values:
        _qualify_columns(value, aliases, text)
    if side.args.get("where") is not None:
        _qualify_columns(side.args["where"], aliases, text)
    return values


def _qualify_columns(expression: exp.Expr, aliases: list[str], text: str) -> None:
    """Give every column its stream: beside the columns of the other side it could belong to several."""
    for column in list(expression.find_all(exp.Column)):
        if column.find_ancestor(exp.Exists) is not None:
            continue
        if not column.table and len(aliases) == 1:
            column.set("table", exp.to_identifier(aliases[0]))
        elif not column.table:
            raise QueryError(
                f"which stream does column '{column.name}' belong to?",
                text,
                span_of(column),
                f"write it as stream.{column.name}",
            )
        elif column.table.casefold() not in (alias.casefold() for alias in aliases):
            raise QueryError(
                f"'{column.table}' is not a stream of this side of EXCEPT",
                text,
                span_of(column),
                f"to compare with the other side, write {EXAMPLE}",
            )


def _tables(side: exp.Select) -> Iterator[StreamTable]:
    """The streams of FROM."""
    origin = side.args.get("from_")
    if origin is not None:
        yield from _joined(origin.this)
        for join in side.args.get("joins") or ():
            yield from _joined(join.this)


def _joined(table: exp.Expr) -> Iterator[StreamTable]:
    """The streams of one entry of FROM: itself, or those in its brackets, and those joined to it."""
    if isinstance(table, exp.Subquery):
        yield from _joined(table.this)
    elif isinstance(table, StreamTable):
        yield table
    for join in table.args.get("joins") or ():
        yield from _joined(join.this)


def _equality(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    equality = exp.EQ(this=_bracketed(left), expression=_bracketed(right))
    span = span_of(right)
    if span is not None:
        equality.meta[SPAN] = span
    return equality


def _bracketed(value: exp.Expr) -> exp.Expr:
    """Brackets keep the meaning when the tree is written as text, as for the oracle: `(a.x OR a.y) = b.z`."""
    return value if isinstance(value, exp.Column | exp.Literal) else exp.Paren(this=value)
