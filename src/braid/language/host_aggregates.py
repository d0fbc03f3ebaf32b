"""Aggregates that the host computes.

Those that depend on the order of rows are given to the host in words that do not: by the event times of the results,
and where these are equal, by the values themselves. So the result depends on the input alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from string import Formatter

from sqlglot import exp

from braid.language.expressions.hosted import host_expression
from braid.language.expressions.node_reader import NodeReader
from braid.language.nodes import span_of
from braid.language.refusal import AGGREGATE_NODES
from braid.model.expressions.aggregates import EVENT_TIME_OPERAND
from braid.model.expressions.expression import Expression, HostExpression

NAMES = frozenset(
    {
        *(
            "any",
            "any_value",
            "approx_count_distinct",
            "approx_percentile",
            "array_agg",
            "bit_and",
            "bit_or",
            "bit_xor",
        ),
        *("bitmap_construct_agg", "bitmap_or_agg", "count_min_sketch", "hll_sketch_agg", "hll_union_agg"),
        *("bool_and", "bool_or", "collect_list", "collect_set", "corr", "count_if", "covar_pop", "covar_samp", "every"),
        *("first", "first_value", "histogram_numeric", "kurtosis", "last", "last_value", "max_by", "median", "min_by"),
        *("percentile", "percentile_approx", "regr_avgx", "regr_avgy", "regr_count", "regr_intercept", "regr_r2"),
        *("regr_slope", "regr_sxx", "regr_sxy", "regr_syy", "skewness", "some", "std", "stddev", "stddev_pop"),
        *("stddev_samp", "try_avg", "try_sum", "var_pop", "var_samp", "variance"),
    }
)
"""Spark's aggregates that are not the engine's."""

_KEPT = "CASE WHEN {0} IS NOT NULL THEN struct({1} AS at, {0} AS value) END"
_ORDERED = {
    **dict.fromkeys(("first", "first_value", "any_value"), ("(min(struct({1} AS at, {0} AS value)){2}).value", 1)),
    **dict.fromkeys(("last", "last_value"), ("(max(struct({1} AS at, {0} AS value)){2}).value", 1)),
    "max_by": ("(max(CASE WHEN {1} IS NOT NULL THEN struct({1} AS at, {0} AS value) END){2}).value", 2),
    "min_by": ("(min(CASE WHEN {1} IS NOT NULL THEN struct({1} AS at, {0} AS value) END){2}).value", 2),
    **dict.fromkeys(
        ("collect_list", "array_agg"), (f"transform(array_sort(collect_list({_KEPT}){{2}}), r -> r.value)", 1)
    ),
    "collect_set": ("array_sort(collect_set({0}){2})", 1),
}
"""Aggregates that depend on the order of rows: what the host computes instead, and the number of arguments. {0} and {1}
are the arguments and, if there is one fewer, the event time; {2} is the place of FILTER."""

_DEPENDS_ON_ORDER = {
    "mode": "of values that are as frequent, the order of rows decides; write COUNT(*) GROUP BY the value, and rank",
    "approx_top_k": "which values it forgets depends on the order of rows; write COUNT(*) GROUP BY the value, and rank",
    **dict.fromkeys(
        ("listagg", "string_agg"),
        "it joins texts in the order of rows; write ARRAY_JOIN(COLLECT_LIST(x), ', '), which is by event time",
    ),
}
"""Aggregates of Spark whose results would depend on more than the input, and what to write instead."""


def is_host_aggregate(node: exp.Expr) -> bool:
    """Whether a node is an aggregate that only a host computes."""
    if isinstance(node, AGGREGATE_NODES) or not isinstance(node, exp.Func):
        return False
    name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
    return isinstance(node, exp.AggFunc) or name in NAMES or name in _DEPENDS_ON_ORDER


def host_aggregate(reader: NodeReader, written: exp.Expr) -> HostExpression:
    """An aggregate of the host, as it is written: with or without FILTER."""
    node = written.this if isinstance(written, exp.Filter) else written
    name = reader.name_of(written).lower()
    if node.find(exp.Distinct) is not None:
        problem = f"{name.upper()}(DISTINCT ..) is not supported"
        raise reader.error(node, problem, "COUNT, SUM and AVG take DISTINCT; COLLECT_SET(x) has each value once")
    if name in _DEPENDS_ON_ORDER:
        raise reader.error(node, f"{name.upper()} depends on more than the input", _DEPENDS_ON_ORDER[name])
    if name not in NAMES:
        hint = "for others, aggregate the results of the query in a further step"
        raise reader.error(node, f"the aggregate {name.upper()} is not supported", hint)
    whole = host_expression(reader, written, aggregate=True)
    if name not in _ORDERED:
        return whole
    template, count = _ORDERED[name]
    arguments = _arguments(node)
    if len(arguments) != count:
        plural = "argument" if count == 1 else "arguments"
        problem = f"{name.upper()} takes {count} {plural} here, not {len(arguments)}"
        example = ", ".join(["a.x", "a.y"][:count])
        raise reader.error(node, problem, f"for example {name.upper()}({example})")
    parts = [host_expression(reader, argument) for argument in arguments]
    time = HostExpression(("", ""), (EVENT_TIME_OPERAND,))
    chosen = HostExpression(("",), ())
    if isinstance(written, exp.Filter):
        chosen = _filter(host_expression(reader, written.expression.this))
    return _filled(template, [*[*parts, time][:2], chosen], whole)


def _filter(condition: HostExpression) -> HostExpression:
    first, *others = condition.pieces
    *middle, last = [f" FILTER (WHERE {first}", *others]
    return HostExpression((*middle, f"{last})"), condition.operands)


def _arguments(node: exp.Expr) -> list[exp.Expr]:
    """The arguments of an aggregate as written, in their order."""
    arguments = [part for part in node.iter_expressions() if span_of(part) is not None]
    return sorted(arguments, key=lambda part: span_of(part).start)  # type: ignore[union-attr]


def _filled(template: str, parts: Sequence[HostExpression], whole: HostExpression) -> HostExpression:
    """The template with these parts in place of {0}, {1} and so on; errors show it as it was written, `whole`."""
    pieces: list[str] = [""]
    operands: list[Expression] = []
    for position, text in _pieces(template):
        pieces[-1] += text
        if position is not None:
            argument = parts[position]
            pieces[-1] += argument.pieces[0]
            pieces += argument.pieces[1:]
            operands += argument.operands
    return HostExpression(tuple(pieces), tuple(operands), None, whole.span, aggregate=True, written=whole.sql(str))


def _pieces(template: str) -> list[tuple[int | None, str]]:
    """The texts of a template, each with the number of the argument that follows it."""
    return [(None if name is None else int(name), text) for text, name, _, _ in Formatter().parse(template)]
