"""What the language does not have, refused by name, with the place and what to do instead."""

from __future__ import annotations

import re

from sqlglot import exp

from braid.errors import QueryError, Span, did_you_mean
from braid.language.dialect import PLACE

BEFORE = "compute it before the query, as a column of the stream"
AFTERWARDS = "do it with the results of the query, in a further step"
ARRANGE = "how rows are spread over processors is for the plan to say"

CLAUSES = {
    "with_": ("WITH", "common table expressions (WITH) are not supported", "write one SELECT over streams"),
    "distinct": ("DISTINCT", "DISTINCT is not supported", "remove repeated rows from the results afterwards"),
    "order": ("ORDER BY", "ORDER BY is not supported", "a result that never ends has no order"),
    "sort": ("SORT BY", "SORT BY is not supported", "a result that never ends has no order"),
    "cluster": ("CLUSTER BY", "CLUSTER BY is not supported", ARRANGE),
    "distribute": ("DISTRIBUTE BY", "DISTRIBUTE BY is not supported", ARRANGE),
    "limit": ("LIMIT", "LIMIT is not supported", "take as many results as you need"),
    "offset": ("OFFSET", "OFFSET is not supported", "drop results you do not need"),
    "qualify": ("QUALIFY", "QUALIFY is not supported", AFTERWARDS),
    "windows": ("WINDOW", "named windows are not supported", "a window stands in brackets after its stream"),
    "laterals": ("LATERAL", "LATERAL VIEW is not supported", BEFORE),
    "hint": (r"/\*\+", "hints are not supported", "plans are given with plan=.., not in the text"),
    "into": ("INTO", "SELECT INTO is not supported", "where results go is said by who runs the query"),
    "locks": ("FOR", "FOR UPDATE is not supported", "remove it: a query only reads"),
    "pivots": ("PIVOT", "PIVOT is not supported", AFTERWARDS),
    "sample": ("TABLESAMPLE", "TABLESAMPLE is not supported", "filter with WHERE instead"),
    "match": ("MATCH_RECOGNIZE", "MATCH_RECOGNIZE is not supported", AFTERWARDS),
    "connect": ("CONNECT", "CONNECT BY is not supported", BEFORE),
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
"""Clauses by sqlglot's name for them: their keyword, what is wrong, what to do."""

UNSTABLE = frozenset(
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
"""Functions whose value is not a function of their arguments."""

_UNSTABLE_NODES = (
    *(exp.CurrentDate, exp.CurrentTime, exp.CurrentTimestamp, exp.CurrentDatetime),
    *(exp.CurrentUser, exp.SessionUser, exp.Rand, exp.Randn, exp.Uuid),
)

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


def place_of(node: exp.Expr) -> Span | None:
    """Where a node stands in the text: as noted when it was read, else from its first to its last word."""
    noted = node.meta.get(PLACE)
    if isinstance(noted, Span):
        return noted
    spans = [
        Span(part.meta["start"], part.meta["end"] + 1) for part in node.walk() if part.meta.get("start") is not None
    ]
    return Span(min(span.start for span in spans), max(span.end for span in spans)) if spans else None


def refuse_clauses(node: exp.Expr, allowed: frozenset[str], text: str) -> None:
    """Refuse the first clause of a SELECT, or of a stream, that is not allowed."""
    for key, value in node.args.items():
        if key in allowed or value in (None, False, "", []):
            continue
        unknown = (key.upper(), f"{key.rstrip('_').upper()} is not supported", "remove it")
        keyword, problem, hint = CLAUSES.get(key, unknown)
        raise QueryError(problem, text, keyword_place(keyword, value, text), hint)


def keyword_place(keyword: str, clause: object, text: str) -> Span | None:
    """The keyword of a clause: the last one before what stands in the clause, or the only one there is."""
    node = clause[0] if isinstance(clause, list) and clause else clause
    inside = place_of(node) if isinstance(node, exp.Expr) else None
    pattern = keyword.replace(" ", r"\s+")
    pattern = rf"\b{pattern}\b" if keyword[0].isalpha() else pattern
    found = list(re.finditer(pattern, text[: inside.start] if inside else text, re.IGNORECASE))
    return Span(*found[-1].span()) if found else inside


def refuse_expression(node: exp.Expr, text: str, known: list[str]) -> QueryError:
    """The error for an expression that the language does not have."""
    span = place_of(node)
    if isinstance(node, exp.Window):
        return QueryError("window functions (OVER) are not supported", text, span, AFTERWARDS)
    if isinstance(node, exp.Exists):
        return QueryError(
            "EXISTS cannot stand here",
            text,
            span,
            "NOT EXISTS (..) is one of the conditions of WHERE, between ANDs; instead of EXISTS, join the stream",
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
        return QueryError(f"the operator {_OPERATORS[type(node)]} is not supported", text, span, BEFORE)
    if isinstance(node, exp.Func):
        return _refuse_function(node, text, span, known)
    return QueryError(f"{_spelled(node)} is not supported", text, span, BEFORE)


def _refuse_function(node: exp.Func, text: str, span: Span | None, known: list[str]) -> QueryError:
    name = written_name(node, text)
    if name.lower() in UNSTABLE or isinstance(node, _UNSTABLE_NODES):
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
        return QueryError(f"{name.upper()} makes rows, and that is not supported", text, span, BEFORE)
    if name.lower() in known:
        hint = "what it may be given is in the reference"
        return QueryError(f"{name.upper()} cannot be called like this", text, span, hint)
    return refuse_function(name, text, span, known)


def refuse_function(name: str, text: str, span: Span | None, known: list[str]) -> QueryError:
    """What to tell about a function that nobody knows."""
    return QueryError(f"there is no function '{name}'", text, _name_place(name, span), did_you_mean(name, known))


def written_name(node: exp.Expr, text: str) -> str:
    """What a function is called in the text."""
    span = place_of(node)
    match = re.match(r"`?(\w+)", text[span.start : span.end]) if span else None
    if match:
        return match[1]
    return node.name if isinstance(node, exp.Anonymous) else node.key


def _name_place(name: str, span: Span | None) -> Span | None:
    return None if span is None else Span(span.start, min(span.end, span.start + len(name)))


def _spelled(node: exp.Expr) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(node).__name__).upper()
