"""Fields of structs, and elements of arrays and maps."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from braid.language.expressions.node_reader import NodeReader, ReadNode
from braid.language.nodes import span_of
from braid.language.refusal import unsupported_expression
from braid.model.expressions.expression import Call, Expression, Literal, has_host_part


def _field(reader: NodeReader, node: exp.Expr) -> Expression:
    """x.name, where x is a struct."""
    name = node.args["expression"]
    struct = reader.read(node.this)
    if not isinstance(name, exp.Identifier) or has_host_part(struct):
        # The host computes no more than the field, if it computes the struct.
        raise unsupported_expression(node, reader.text, [])
    return Call("field", (struct, Literal(name.name, pa.string(), span_of(name))), span_of(node))


def _element(reader: NodeReader, node: exp.Expr) -> Expression:
    """x[position], where x is an array, or x[key], where x is a map."""
    if len(node.expressions) != 1 or isinstance(node.expressions[0], exp.Slice):
        raise reader.error(node, "one position or key stands in these brackets", "for example tags[0] or prices['x']")
    collection = reader.read(node.this)
    if has_host_part(collection):
        raise unsupported_expression(node, reader.text, [])
    return Call("element", (collection, reader.read(node.expressions[0])), span_of(node))


ELEMENTS: dict[type[exp.Expr], ReadNode] = {exp.Dot: _field, exp.Bracket: _element}
