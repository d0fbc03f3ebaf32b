"""Casts: CAST(x AS type), x::type, and DATE '..' or TIMESTAMP '..', which sqlglot reads as casts."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from braid.language.expressions.node_reader import NodeReader, ReadNode
from braid.language.expressions.values import suffixed_literal
from braid.language.literals import time_literal
from braid.language.names import SIZED_NAMES, TYPE_NAMES, TYPES
from braid.language.nodes import span_of
from braid.language.syntax_errors import TYPE_HINT, shorten
from braid.model.expressions.expression import Cast, Expression


def _cast(reader: NodeReader, node: exp.Expr) -> Expression:
    reader.refuse_extras(node, "this", "to")
    suffixed = suffixed_literal(reader, node)
    if suffixed is not None:
        return suffixed
    span = span_of(node)
    operand = node.this
    target = _type(reader, node.args["to"])
    is_text = isinstance(operand, exp.Literal) and operand.is_string
    if is_text and reader.written(node).lower().startswith(("date", "timestamp")):
        return time_literal(operand.name, target, span_of(operand) or span, reader.text)
    return Cast(reader.read(operand), target, span)


def _type(reader: NodeReader, node: exp.Expr) -> pa.DataType:
    assert isinstance(node, exp.DataType)
    collation = node.args.get("collate")
    if collation is not None:
        raise reader.error(collation, "COLLATE is not supported", "texts compare by their bytes")
    written = reader.written(node).upper()
    word, bracket, size = written.partition("(")
    is_sized = word.strip() in SIZED_NAMES and size.removesuffix(")").strip().isdecimal()
    is_known = not written or word.strip() in TYPE_NAMES or is_sized
    if is_known and node.this == exp.DType.DECIMAL:
        return _decimal(reader, node, has_brackets=bool(bracket))
    type_ = TYPES.get(node.this)
    if type_ is None or node.expressions or not is_known:
        raise reader.unsupported(node, f"there is no type {shorten(written)} to cast to", TYPE_HINT)
    return type_


def _decimal(reader: NodeReader, node: exp.DataType, has_brackets: bool) -> pa.DataType:
    parameters = [parameter.name for parameter in node.expressions]
    allowed_counts = (1, 2) if has_brackets else (0,)
    are_small_numbers = all(digits.isdigit() and len(digits) < 4 for digits in parameters)
    if len(parameters) not in allowed_counts or not are_small_numbers:
        raise reader.error(node, "DECIMAL takes two whole numbers", "for example DECIMAL(10, 2)")
    precision = int(parameters[0]) if parameters else 10
    scale = int(parameters[1]) if len(parameters) == 2 else 0
    if not 1 <= precision <= 38 or scale > precision:
        raise reader.error(
            node,
            f"there is no DECIMAL({precision}, {scale})",
            "the first number is 1 to 38, and the second at most the first",
        )
    return pa.decimal128(precision, scale)


CASTS: dict[type[exp.Expr], ReadNode] = {exp.Cast: _cast, exp.TryCast: _cast}
