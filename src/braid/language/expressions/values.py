"""Columns, constants, and the minus before a constant."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from braid.language.expressions.node_reader import NodeReader, ReadNode
from braid.language.intervals import interval_literal
from braid.language.literals import negative, number_literal, suffixed_number
from braid.language.nodes import CALL, span_of
from braid.language.refusal import unsupported_expression
from braid.model.expressions.expression import Call, Column, Expression, Literal


def _paren(reader: NodeReader, node: exp.Expr) -> Expression:
    call = node.meta.get(CALL)
    if call is not None and call.name.upper() in ("AND", "OR"):
        hint = f"write it between two conditions: x {call.name} y"
        raise reader.error(node, f"{call.name.upper()} is no function", hint)
    return reader.read(node.this)


def _column(reader: NodeReader, node: exp.Expr) -> Expression:
    assert isinstance(node, exp.Column)
    if isinstance(node.this, exp.Star) or not isinstance(node.this, exp.Identifier):
        raise unsupported_expression(node.this, reader.text, [])
    qualifier = node.args.get("table")
    source = None if qualifier is None else reader.resolve(qualifier.name, span_of(qualifier))
    return Column(source, node.name, span_of(node))


def _literal(reader: NodeReader, node: exp.Expr) -> Expression:
    assert isinstance(node, exp.Literal)
    span = span_of(node)
    if node.is_string:
        return Literal(node.name, pa.string(), span)
    return number_literal(node.name, span, reader.text)


def _boolean(reader: NodeReader, node: exp.Expr) -> Expression:
    return Literal(bool(node.this), pa.bool_(), span_of(node))


def _null(reader: NodeReader, node: exp.Expr) -> Expression:
    return Literal(None, pa.null(), span_of(node))


def _raw_text(reader: NodeReader, node: exp.Expr) -> Expression:
    return Literal(node.name, pa.string(), span_of(node))


def _hexadecimal(reader: NodeReader, node: exp.Expr) -> Expression:
    digits = node.name
    if len(digits) % 2:
        digits = "0" + digits
    try:
        return Literal(bytes.fromhex(digits), pa.binary(), span_of(node))
    except ValueError:
        raise reader.error(node, "these are no hexadecimal digits", "for example X'1F'") from None


def _interval(reader: NodeReader, node: exp.Expr) -> Expression:
    assert isinstance(node, exp.Interval)
    return interval_literal(node, reader.text)


def _negate(reader: NodeReader, node: exp.Expr) -> Expression:
    # A minus belongs to the constant after it: -128Y is a tinyint, though 128Y is too large for one.
    span = span_of(node)
    operand = node.this
    if isinstance(operand, exp.Literal) and not operand.is_string:
        return number_literal("-" + operand.name, span, reader.text)
    suffixed = suffixed_literal(reader, operand, sign="-")
    if suffixed is not None:
        return replace(suffixed, span=span)
    value = reader.read(operand)
    negated = negative(value, span) if isinstance(value, Literal) else None
    return negated or Call("negate", (value,), span)


def suffixed_literal(reader: NodeReader, node: exp.Expr, sign: str = "") -> Literal | None:
    """A number with a letter for its type, such as 10L, which sqlglot reads as a cast; None for any other node."""
    span = span_of(node)
    if not isinstance(node, exp.Cast) or not isinstance(node.this, exp.Literal) or span is None:
        return None
    return suffixed_number(sign + reader.written(node), span, reader.text)


VALUES: dict[type[exp.Expr], ReadNode] = {
    exp.Paren: _paren,
    exp.Column: _column,
    exp.Literal: _literal,
    exp.Boolean: _boolean,
    exp.Null: _null,
    exp.HexString: _hexadecimal,
    exp.RawString: _raw_text,
    exp.Interval: _interval,
    exp.Neg: _negate,
}
