"""The errors for SQL that the language does not have: they name it, point at it and say what to do instead."""

from __future__ import annotations

import re

from sqlglot import exp

from braid.errors import QueryError, Span, did_you_mean
from braid.language.nodes import CALL, span_of

__all__ = [
    "AGGREGATE_NODES",
    "Unsupported",
    "is_event_time",
    "is_refused_everywhere",
    "is_unstable",
    "keyword_span",
    "not_from_groups",
    "refuse_clauses",
    "unknown_function",
    "unsupported_expression",
    "written_name",
]


class Unsupported(QueryError):  # noqa: N818
    """SQL that the engine does not have. A host may compute it."""


_ON_SPARK = "with braid.Session, Spark computes its own and registered functions"
_COMPUTE_BEFORE = "compute it before the query, as a column of the stream"
_DO_AFTERWARDS = "do it with the results of the query, in a further step"
_BEST_OF_A_GROUP = (
    "for the best results of each group write QUALIFY ROW_NUMBER() OVER (PARTITION BY WINDOW(event_time, '1 minute'), "
    "k ORDER BY x DESC) <= 10"
)
_PLAN_DECIDES = "the plan decides how rows are distributed"

_CLAUSES = {
    "with_": ("WITH", "WITH is not supported here", "write it at the beginning of the query"),
    "distinct": ("DISTINCT", "DISTINCT is not supported here", "write it after the first SELECT"),
    "order": ("ORDER BY", "ORDER BY is not supported", "a result that never ends has no order"),
    "sort": ("SORT BY", "SORT BY is not supported", "a result that never ends has no order"),
    "cluster": ("CLUSTER BY", "CLUSTER BY is not supported", _PLAN_DECIDES),
    "distribute": ("DISTRIBUTE BY", "DISTRIBUTE BY is not supported", _PLAN_DECIDES),
    "limit": ("LIMIT", "LIMIT is not supported", "take as many results as you need"),
    "offset": ("OFFSET", "OFFSET is not supported", "drop results you do not need"),
    "qualify": ("QUALIFY", "QUALIFY is not supported here", "write it in the outermost SELECT"),
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
        *("now", "curdate", "current_date", "current_time", "current_timestamp", "localtimestamp", "localtime"),
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

_NO_VALUES_OF_A_ROW = (
    *(exp.Window, exp.Select, exp.Subquery, exp.SetOperation, exp.Star),
    *(exp.Placeholder, exp.Parameter, exp.SessionParameter),
    *(exp.AggFunc, exp.UDTF, exp.Explode),
)
"""Nodes that are not one value for each row."""

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
    """Raise an error for the first clause of a node that is not in `allowed`."""
    for key, value in node.args.items():
        if key in allowed or value in (None, False, "", []):
            continue
        unknown = (key.upper(), f"{key.rstrip('_').upper()} is not supported", "remove it")
        keyword, problem, hint = _CLAUSES.get(key, unknown)
        raise QueryError(problem, text, keyword_span(keyword, value, text), hint)


def keyword_span(keyword: str, clause: object, text: str) -> Span | None:
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


def is_event_time(node: exp.Expr) -> bool:
    """Whether a node is CURRENT_TIMESTAMP as written, which is the event time of a result."""
    # sqlglot itself adds CURRENT_TIMESTAMP to UNIX_TIMESTAMP(); that one is not in the text, so it has no span.
    return isinstance(node, exp.CurrentTimestamp) and span_of(node) is not None and node.this is None


def is_refused_everywhere(node: exp.Expr) -> bool:
    """Whether no host computes a node: it is not one value for each row, or depends on more than the input."""
    if isinstance(node, _NO_VALUES_OF_A_ROW):
        return True
    call = node.meta.get(CALL)
    # sqlglot wraps arguments in functions of its own; only calls in the text have names.
    name = "" if call is None else str(call.name)
    return isinstance(node, exp.Func) and not is_event_time(node) and _is_unstable(node, name)


def is_unstable(node: exp.Expr, text: str) -> bool:
    """Whether the value of a call depends on more than its arguments, for example on the clock."""
    return isinstance(node, exp.Func) and _is_unstable(node, written_name(node, text))


def _is_unstable(node: exp.Func, name: str) -> bool:
    """Whether a function depends on more than its arguments; UNIX_TIMESTAMP() without arguments reads the clock."""
    reads_clock = isinstance(node, exp.StrToUnix) and isinstance(node.this, exp.CurrentTimestamp)
    return name.lower() in _UNSTABLE or isinstance(node, _UNSTABLE_NODES) or reads_clock


def unsupported_expression(node: exp.Expr, text: str, known: list[str]) -> Unsupported:
    """The error for a node that the language does not have; `known` are the names of its functions."""
    span = span_of(node)
    if isinstance(node, exp.Window):
        if isinstance(node.this, exp.RowNumber):
            hint = "select it as a column of its own, and compare it with whole numbers: rn <= 10"
            return Unsupported("ROW_NUMBER() cannot be part of an expression", text, span, hint)
        problem = "window functions (OVER) other than ROW_NUMBER() are not supported"
        return Unsupported(problem, text, span, _BEST_OF_A_GROUP)
    if isinstance(node, exp.Exists):
        return Unsupported(
            "EXISTS cannot stand here",
            text,
            span,
            "EXISTS (..) and NOT EXISTS (..) are conditions of WHERE, between ANDs",
        )
    if isinstance(node, exp.Any | exp.All) and node.find(exp.Select):
        hint = "write x IN (SELECT ..) or x NOT IN (SELECT ..), or a condition of EXISTS (SELECT ..)"
        return Unsupported("ANY, SOME and ALL of a subquery are not supported", text, span, hint)
    if isinstance(node, exp.Select | exp.Subquery | exp.SetOperation):
        return Unsupported("subqueries are not supported here", text, span, "join the streams in FROM instead")
    if isinstance(node, exp.Placeholder | exp.Parameter | exp.SessionParameter):
        return Unsupported("placeholders are not supported", text, span, "write the value itself")
    if isinstance(node, exp.Bracket | exp.Dot):
        return Unsupported("this cannot stand here", text, span, "elements are written as a.address.city or a.tags[0]")
    if isinstance(node, exp.Star):
        return Unsupported("* stands alone or after the name of a stream", text, span, "for example SELECT a.*")
    if isinstance(node, exp.Tuple):
        return Unsupported("lists of values are not supported here", text, span, "compare the values one by one")
    if type(node) in _OPERATORS:
        return Unsupported(
            f"the operator {_OPERATORS[type(node)]} is not supported", text, span, f"{_COMPUTE_BEFORE}; {_ON_SPARK}"
        )
    if isinstance(node, exp.Func):
        return _unsupported_function(node, text, span, known)
    return Unsupported(f"{_spelled(node)} is not supported", text, span, f"{_COMPUTE_BEFORE}; {_ON_SPARK}")


def _unsupported_function(node: exp.Func, text: str, span: Span | None, known: list[str]) -> Unsupported:
    name = written_name(node, text)
    if is_event_time(node):
        return Unsupported(
            "CURRENT_TIMESTAMP is the event time of a result, which only Spark can select",
            text,
            span,
            "with braid.Session it stands in SELECT; elsewhere use the event-time columns: GREATEST(a.ts, b.ts)",
        )
    if is_unstable(node, text):
        return Unsupported(
            f"{name.upper()} is not supported: its value does not depend on the input alone",
            text,
            span,
            "use the columns of the streams",
        )
    if isinstance(node, AGGREGATE_NODES) or name.lower() == "mean":
        return Unsupported(
            f"the aggregate {name.upper()} cannot stand here",
            text,
            span,
            "aggregates stand in SELECT and HAVING, and not within each other",
        )
    if isinstance(node, exp.AggFunc):
        return Unsupported(
            f"the aggregate {name.upper()} is not supported",
            text,
            span,
            f"there are COUNT, SUM, AVG, MIN and MAX; {_ON_SPARK}",
        )
    if isinstance(node, exp.UDTF):
        return Unsupported(f"{name.upper()} is a table function, which is not supported", text, span, _COMPUTE_BEFORE)
    if name.lower() in _NESTED:
        hint = f"select the parts as columns of their own; {_ON_SPARK}"
        return Unsupported(f"{name.upper()} is not supported", text, span, hint)
    if name.lower() in known:
        hint = "the reference of the query language lists its arguments"
        return Unsupported(f"{name.upper()} cannot be called like this", text, span, hint)
    return unknown_function(name, text, span, known)


def not_from_groups(expression: str, text: str, span: Span | None) -> QueryError:
    """The error for an expression of the host over groups."""
    hint = "select what it reads, and compute it from the results of the query in a further step"
    return QueryError(f"{expression} cannot be computed from groups", text, span, hint)


def unknown_function(name: str, text: str, span: Span | None, known: list[str]) -> Unsupported:
    """The error for a function with an unknown name."""
    name_span = None if span is None else Span(span.start, min(span.end, span.start + len(name)))
    return Unsupported(f"there is no function '{name}'", text, name_span, f"{did_you_mean(name, known)}; {_ON_SPARK}")


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
