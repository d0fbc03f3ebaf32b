"""CASE, and functions whose node is not simply a name with arguments."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from braid.language.expressions.node_reader import NodeReader, ReadNode, arguments_of
from braid.language.expressions.time_functions import date_part
from braid.language.names import FUNCTION_NAMES
from braid.language.nodes import span_of
from braid.language.refusal import unsupported_expression
from braid.model.expressions.expression import Call, Expression, Literal
from braid.model.expressions.functions import FUNCTIONS as SIGNATURES


def _case(reader: NodeReader, node: exp.Expr) -> Expression:
    """CASE WHEN condition THEN value .. END, and CASE subject WHEN value THEN value .. END."""
    subject = node.args.get("this")
    arguments: list[Expression] = []
    for branch in node.args["ifs"]:
        value = branch.args["true"]
        reader.require_word("THEN", branch.this, value)
        condition = reader.read(branch.this)
        if subject is not None:
            condition = Call("equal", (reader.read(subject), condition), condition.span)
        arguments += [condition, reader.read(value)]
    arguments.append(_read_or_null(reader, node.args.get("default")))
    return reader.checked(Call("case", tuple(arguments), span_of(node)))


def _if(reader: NodeReader, node: exp.Expr) -> Expression:
    default = _read_or_null(reader, node.args.get("false"))
    return Call("case", (reader.read(node.this), reader.read(node.args["true"]), default), span_of(node))


def _read_or_null(reader: NodeReader, node: exp.Expr | None) -> Expression:
    return Literal(None, pa.null()) if node is None else reader.read(node)


def _nullif(reader: NodeReader, node: exp.Expr) -> Expression:
    value, other = reader.read(node.this), reader.read(node.args["expression"])
    equal = Call("equal", (value, other), span_of(node))
    return Call("case", (equal, Literal(None, pa.null()), value), span_of(node))


def _concat_operator(reader: NodeReader, node: exp.Expr) -> Expression:
    """x || y || z."""
    operands = [reader.read(operand) for operand in node.flatten(unnest=False)]
    return reader.checked(Call("concat", tuple(operands), span_of(node)))


def _concat(reader: NodeReader, node: exp.Expr) -> Expression:
    """CONCAT(x, y), or the text in pieces 'a' 'b', which is one constant."""
    operands = [reader.read(operand) for operand in node.expressions]
    texts = [operand.value for operand in operands if isinstance(operand, Literal) and isinstance(operand.value, str)]
    if len(texts) == len(operands) and reader.written(node)[:1] in ("'", '"'):
        return Literal("".join(texts), pa.string(), span_of(node))
    return reader.checked(Call("concat", tuple(operands), span_of(node)))


def _trim(reader: NodeReader, node: exp.Expr) -> Expression:
    """TRIM(x), TRIM(LEADING y FROM x), LTRIM(x), .."""
    reader.refuse_extras(node, "this", "expression", "position")
    position = str(node.args.get("position") or "BOTH").upper()
    function = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(position, "trim")
    return reader.call(node, function, *arguments_of(node, ("this", "expression")))


def _log(reader: NodeReader, node: exp.Expr) -> Expression:
    """LOG(base, x), or LOG10(x)."""
    base, value = node.this, node.args["expression"]
    if isinstance(base, exp.Literal) and base.name == "10":
        return reader.call(node, "log10", value)
    return reader.call(node, "log", base, value)


def _anonymous(reader: NodeReader, node: exp.Expr) -> Expression:
    """A function that sqlglot has no node for."""
    assert isinstance(node, exp.Anonymous)
    name = reader.name_of(node).lower()
    if name == "date_part" and len(node.expressions) == 2:
        return date_part(reader, node)
    if name == "isnotnull" and len(node.expressions) == 1:
        return Call("not", (reader.call(node, "is_null", *node.expressions),), span_of(node))
    function = FUNCTION_NAMES.get(name)
    if function not in SIGNATURES:
        raise unsupported_expression(node, reader.text, list(FUNCTION_NAMES))
    return reader.call(node, function, *node.expressions)


FUNCTIONS: dict[type[exp.Expr], ReadNode] = {
    exp.Case: _case,
    exp.If: _if,
    exp.Nullif: _nullif,
    exp.Concat: _concat,
    exp.DPipe: _concat_operator,
    exp.Trim: _trim,
    exp.Log: _log,
    exp.Anonymous: _anonymous,
}
