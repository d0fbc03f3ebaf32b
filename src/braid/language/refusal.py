"""The errors for SQL that the language does not have: they name it, point at it and say what to do instead."""

from __future__ import annotations

import re

from sqlglot import exp

from braid.errors import QueryError, Span, did_you_mean
from braid.language.nodes import span_of

__all__ = [
    "AGGREGATE_NODES",
    "keyword_place",
    "refuse_clauses",
    "unknown_function",
    "unsupported_expression",
    "written_name",
]

_COMPUTE_BEFORE = "compute it before the query, as a column of the stream"
_DO_AFTERWARDS = "do it with the results of the query, in a further step"
_PLAN_DECIDES = "the plan decides how rows are distributed"

_CLAUSES = {
    "with_": ("WITH", "common table expressions (WITH) are not supported", "write one SELECT over streams"),
    "distinct": ("DISTINCT", "DISTINCT is not supported", "remove repeated rows from the results afterwards"),
    "order": ("ORDER BY", "ORDER BY is not supported", "a result that never ends has no order"),
    "sort": ("SORT BY", "SORT BY is not supported", "a result that never ends has no order"),
    "cluster": ("CLUSTER BY", "CLUSTER BY is not supported", _PLAN_DECIDES),
    "distribute": ("DISTRIBUTE BY", "DISTRIBUTE BY is not supported", _PLAN_DECIDES),
    "limit": ("LIMIT", "LIMIT is not supported", "take as many results as you need"),
    "offset": ("OFFSET", "OFFSET is not supported", "drop results you do not need"),
    "qualify": ("QUALIFY", "QUALIFY is not supported", _DO_AFTERWARDS),
    "windows": ("WINDOW", "named windows are not supported", "a window stands in brackets after its stream"),
    "laterals": ("LATERAL", "LATERAL VIEW is not supported", _COMPUTE_BEFORE),
    "hint": (r"/\*\+", "hints are not supported", "plans are given with plan=.., not in the text"),
    "into": ("INTO", "SELECT INTO is not supported", "the program that runs the query decides where results go"),
    "locks": ("FOR", "FOR UPDATE is not supported", "remove it: a query only reads"),
    "pivots": ("PIVOT", "PIVOT is not supported", _DO_AFTERWARDS),
    "sample": ("TABLESAMPLE", "TABLESAMPLE is not supported", "filter with WHERE instead"),
    "match": ("MATCH_RECOGNIZE", "MATCH_RECOGNIZE is not supported", _DO_AFTERWARDS),
    "connect": ("CONNECT", "CONNECT BY is not supported", _COMPUTE_BEFORE),
    "kind": ("SELECT", "SELECT AS is not supported", "select columns and expressions"),
    "operation_modifiers": ("SELECT", "modifiers of SELECT are not supported", "select columns and expressions"),
    "settings": ("SETTINGS", "SETTINGS is not supported", "remove it"),
    "format": ("FORMAT", "FORMAT is not supported", "remove it"),
    "options": ("OPTION", "OPTION is not supported", "remove it"),
    "prewhere": ("PREWHERE", "PREWHERE is not supported", "write WHERE"),
    "version": ("VERSION", "time travel is not supported", "a window says which rows count"),
    "when": ("AT", "time travel is not supported", "a window says which rows count"),
    "hints": ("WITH", "hints are not supported", "plans are given with plan=.., not in the text"),
    "except_": ("EXCEPT", "* EXCEPT is not supported", "name the columns that you want"),
    "partition": (
        "PARTITION",
        "PARTITION is not supported here",
        "windows stand in brackets: [PARTITION BY k ROWS 10]",
    ),
}
"""Refused clauses by sqlglot's name for them: the keyword to point at, the problem, the hint."""

_UNSTABLE = frozenset(
    {
        *("rand", "randn", "random", "uuid", "shuffle", "monotonically_increasing_id", "spark_partition_id"),
        *(
            "now",
            "curdate",
            "current_date",
            "current_time",
            "current_timestamp",
            "localtimestamp",
            "localtime",
        ),
        *("current_timezone", "current_user", "session_user", "user", "current_database", "current_catalog"),
        "input_file_name",
    }
)
"""Functions whose value depends on more than their arguments, such as the clock."""

_UNSTABLE_NODES = (
    *(exp.CurrentDate, exp.CurrentTime, exp.CurrentTimestamp, exp.CurrentDatetime),
    *(exp.CurrentUser, exp.SessionUser, exp.Rand, exp.Randn, exp.Uuid),
)

_NESTED = frozenset({"struct", "named_struct", "array", "map", "map_from_arrays", "to_json", "from_json"})
"""Functions that make nested values, or take them apart."""

AGGREGATE_NODES = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max)
"""The aggregates that the language has."""

_OPERATORS: dict[type[exp.Expr], str] = {
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
    exp.BitwiseNot: "~",
    exp.BitwiseLeftShift: "<<",
    exp.BitwiseRightShift: ">>",
    exp.Xor: "XOR",
    exp.Collate: "COLLATE",
    exp.AtTimeZone: "AT TIME ZONE",
    exp.SimilarTo: "SIMILAR TO",
    exp.Glob: "GLOB",
}


def refuse_clauses(node: exp.Expr, allowed: frozenset[str], text: str) -> None:
    """Raise the error for the first clause of a node that is not allowed."""
    for key, value in node.args.items():
        if key in allowed or value in (None, False, "", []):
            continue
        unknown = (key.upper(), f"{key.rstrip('_').upper()} is not supported", "remove it")
        keyword, problem, hint = _CLAUSES.get(key, unknown)
        raise QueryError(problem, text, keyword_place(keyword, value, text), hint)


def keyword_place(keyword: str, clause: object, text: str) -> Span | None:
    """The span of a clause's keyword: its last occurrence before the content of the clause.

    If the keyword is not found, the span of the content.
    """
    node = clause[0] if isinstance(clause, list) and clause else clause
    content = span_of(node) if isinstance(node, exp.Expr) else None
    pattern = keyword.replace(" ", r"\s+")
    if keyword[0].isalpha():
        pattern = rf"\b{pattern}\b"
    before = text[: content.start] if content else text
    matches = list(re.finditer(pattern, before, re.IGNORECASE))
    return Span(*matches[-1].span()) if matches else content


def unsupported_expression(node: exp.Expr, text: str, known: list[str]) -> QueryError:
    """The error for a node that the language does not have; `known` are the names of its functions."""
    span = span_of(node)
    if isinstance(node, exp.Window):
        return QueryError("window functions (OVER) are not supported", text, span, _DO_AFTERWARDS)
    if isinstance(node, exp.Exists):
        return QueryError(
            "EXISTS cannot stand here",
            text,
            span,
            "EXISTS (..) and NOT EXISTS (..) are conditions of WHERE, between ANDs",
        )
    if isinstance(node, exp.Select | exp.Subquery | exp.SetOperation):
        return QueryError("subqueries are not supported", text, span, "join the streams in FROM instead")
    if isinstance(node, exp.Placeholder | exp.Parameter | exp.SessionParameter):
        return QueryError("placeholders are not supported", text, span, "write the value itself")
    if isinstance(node, exp.Bracket | exp.Dot):
        return QueryError(
            "elements of arrays, maps and structs are not supported",
            text,
            span,
            "make a column of it before the query",
        )
    if isinstance(node, exp.Star):
        return QueryError("* stands alone or after the name of a stream", text, span, "for example SELECT a.*")
    if isinstance(node, exp.Tuple):
        return QueryError("lists of values are not supported here", text, span, "compare the values one by one")
    if type(node) in _OPERATORS:
        return QueryError(f"the operator {_OPERATORS[type(node)]} is not supported", text, span, _COMPUTE_BEFORE)
    if isinstance(node, exp.Func):
        return _unsupported_function(node, text, span, known)
    return QueryError(f"{_spelled(node)} is not supported", text, span, _COMPUTE_BEFORE)


def _unsupported_function(node: exp.Func, text: str, span: Span | None, known: list[str]) -> QueryError:
    name = written_name(node, text)
    if name.lower() in _UNSTABLE or isinstance(node, _UNSTABLE_NODES):
        return QueryError(
            f"{name.upper()} is not supported: its value does not depend on the input alone",
            text,
            span,
            "use the columns of the streams",
        )
    if isinstance(node, AGGREGATE_NODES) or name.lower() == "mean":
        return QueryError(
            f"the aggregate {name.upper()} cannot stand here",
            text,
            span,
            "aggregates stand in SELECT and HAVING, and not within each other",
        )
    if isinstance(node, exp.AggFunc):
        return QueryError(
            f"the aggregate {name.upper()} is not supported",
            text,
            span,
            "there are COUNT, SUM, AVG, MIN and MAX; for others, aggregate the results of the query in a further step",
        )
    if isinstance(node, exp.UDTF):
        return QueryError(f"{name.upper()} is a table function, which is not supported", text, span, _COMPUTE_BEFORE)
    if name.lower() in _NESTED:
        hint = "select the parts as columns of their own; put them together with the results of the query"
        return QueryError(f"{name.upper()} is not supported", text, span, hint)
    if name.lower() in known:
        hint = "the reference of the query language lists its arguments"
        return QueryError(f"{name.upper()} cannot be called like this", text, span, hint)
    return unknown_function(name, text, span, known)


def unknown_function(name: str, text: str, span: Span | None, known: list[str]) -> QueryError:
    """The error for a function with an unknown name."""
    name_span = None if span is None else Span(span.start, min(span.end, span.start + len(name)))
    return QueryError(f"there is no function '{name}'", text, name_span, did_you_mean(name, known))


def written_name(node: exp.Expr, text: str) -> str:
    """The name of a function as written in the text."""
    span = span_of(node)
    match = re.match(r"`?(\w+)", text[span.start : span.end]) if span else None
    if match:
        return match[1]
    return node.name if isinstance(node, exp.Anonymous) else node.key


def _spelled(node: exp.Expr) -> str:
    """The class of a node in words: JSONExtract is JSONEXTRACT, AtTimeZone is AT TIME ZONE."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(node).__name__).upper()
