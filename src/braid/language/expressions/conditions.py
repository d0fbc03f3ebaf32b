"""Conditions: AND, OR, NOT, BETWEEN, IN, IS and LIKE."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from braid.language.expressions.node_reader import NodeReader, ReadNode
from braid.language.nodes import CALL, span_of
from braid.language.refusal import unsupported_expression
from braid.model.expressions.expression import Call, Expression, Literal

_TESTS = (exp.Between, exp.In, exp.Like, exp.ILike, exp.RegexpLike, exp.Escape)


def refuse_bare_tests(reader: NodeReader, comparison: exp.Expr) -> None:
    """Refuse a comparison of which an operand is BETWEEN, IN or LIKE without brackets.

    Spark would evaluate the comparison first, sqlglot the test: only with brackets they agree.
    """
    for operand in (comparison.this, comparison.args["expression"]):
        test = operand.this if isinstance(operand, exp.Not) else operand
        if isinstance(test, _TESTS) and CALL not in test.meta:
            raise reader.error(
                comparison,
                "a comparison beside BETWEEN, IN or LIKE is ambiguous",
                "add brackets: a.x = (b.y IN (1, 2))",
            )


def _connective(reader: NodeReader, node: exp.Expr) -> Expression:
    """A chain of AND or OR as a balanced tree: long chains are common, and a tree as deep would exhaust the stack."""
    function = "and" if isinstance(node, exp.And) else "or"
    operands = [reader.read(operand) for operand in node.flatten(unnest=False)]
    return _balanced(function, operands)


def _balanced(function: str, operands: list[Expression]) -> Expression:
    """A tree of calls with two arguments each over a list of operands, of the least depth."""
    if len(operands) == 1:
        return operands[0]
    half = len(operands) // 2
    left = _balanced(function, operands[:half])
    right = _balanced(function, operands[half:])
    return Call(function, (left, right), left.span.union(right.span) if left.span else right.span)


def _not(reader: NodeReader, node: exp.Expr) -> Expression:
    return Call("not", (reader.read(node.this),), span_of(node))


def _between(reader: NodeReader, node: exp.Expr) -> Expression:
    reader.require_word("AND", node.args["low"], node.args["high"])
    value = reader.read(node.this)
    low = reader.read(node.args["low"])
    high = reader.read(node.args["high"])
    span = span_of(node)
    if node.args.get("symmetric"):
        raise reader.error(node, "BETWEEN SYMMETRIC is not supported", "write the smaller bound first")
    return Call("and", (Call("greater_equal", (value, low), span), Call("less_equal", (value, high), span)), span)


def _in(reader: NodeReader, node: exp.Expr) -> Expression:
    if node.args.get("query") is not None or node.args.get("unnest") is not None or not node.expressions:
        if node.args.get("query") is not None:
            hint = "it is one of the conditions of WHERE, between ANDs: x IN (SELECT b.k FROM ..)"
            raise reader.error(node, "IN (SELECT ..) cannot stand here", hint)
        raise reader.error(node, "IN takes a list of values", "for example x IN (1, 2, 3)")
    return reader.call(node, "in", node.this, *node.expressions)


def _is(reader: NodeReader, node: exp.Expr) -> Expression:
    operand = reader.read(node.this)
    value = node.args["expression"]
    span = span_of(node)
    if isinstance(value, exp.Null):
        return Call("is_null", (operand,), span)
    if isinstance(value, exp.Boolean):
        return Call("same", (operand, Literal(bool(value.this), pa.bool_())), span)
    problem = "IS is followed by NULL, TRUE, FALSE or DISTINCT FROM"
    raise reader.error(node, problem, "compare with =, or with <=>")


def _is_distinct_from(reader: NodeReader, node: exp.Expr) -> Expression:
    same = Call("same", (reader.read(node.this), reader.read(node.args["expression"])), span_of(node))
    return Call("not", (same,), span_of(node))


def _like(reader: NodeReader, node: exp.Expr) -> Expression:
    return _like_with_escape(reader, node, None)


def _like_with_escape(reader: NodeReader, node: exp.Expr, escape: exp.Expr | None) -> Expression:
    reader.refuse_extras(node, "this", "expression", "negate")
    pattern = node.args["expression"]
    if isinstance(pattern, exp.Any | exp.All | exp.Tuple):
        raise reader.unsupported(node, "LIKE ANY and LIKE ALL are not supported", "join several LIKE with OR")
    operands = [node.this, pattern]
    if escape is not None:
        operands.append(escape)
    function = {"ilike": "ilike", "regexplike": "rlike"}.get(node.key, "like")
    call = reader.call(node, function, *operands)
    return Call("not", (call,), call.span) if node.args.get("negate") else call


def _escape(reader: NodeReader, node: exp.Expr) -> Expression:
    """x LIKE y ESCAPE z."""
    if not isinstance(node.this, exp.Like | exp.ILike):
        raise unsupported_expression(node, reader.text, [])
    return _like_with_escape(reader, node.this, node.args["expression"])


CONDITIONS: dict[type[exp.Expr], ReadNode] = {
    exp.And: _connective,
    exp.Or: _connective,
    exp.Not: _not,
    exp.Between: _between,
    exp.In: _in,
    exp.Is: _is,
    exp.NullSafeNEQ: _is_distinct_from,
    exp.Like: _like,
    exp.ILike: _like,
    exp.RegexpLike: _like,
    exp.Escape: _escape,
}
