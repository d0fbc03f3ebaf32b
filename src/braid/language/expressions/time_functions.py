"""Functions of dates and timestamps whose node is not simply a name with arguments."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from braid.errors import QueryError, did_you_mean
from braid.language.expressions.node_reader import NodeReader, ReadNode
from braid.language.names import PARTS
from braid.language.nodes import CALL, SPAN, span_of
from braid.model.expressions.expression import Call, Cast, Expression, Literal


def _extract(reader: NodeReader, node: exp.Expr) -> Expression:
    """EXTRACT(unit FROM x)."""
    unit = node.name.lower()
    function = "fractional_second" if unit in ("second", "seconds") else PARTS.get(unit)
    if function is None:
        raise reader.unsupported(node, f"EXTRACT does not know '{unit}'", did_you_mean(unit, PARTS))
    return reader.call(node, function, node.args["expression"])


def date_part(reader: NodeReader, node: exp.Anonymous) -> Expression:
    """DATE_PART('unit', x), which is EXTRACT(unit FROM x) in other words."""
    unit, time = node.expressions
    if not unit.is_string:
        raise _unquoted_unit(reader, node, "DATE_PART")
    return _extract(reader, exp.Extract(this=exp.var(unit.name), expression=time))


def _date_trunc(reader: NodeReader, node: exp.Expr) -> Expression:
    """DATE_TRUNC('unit', x)."""
    unit, call = node.args.get("unit"), node.meta.get(CALL)
    if call is None or not call.begins_with_text:
        raise _unquoted_unit(reader, node, "DATE_TRUNC")
    literal = Literal("" if unit is None else unit.name.lower(), pa.string(), span_of(node))
    return Call("date_trunc", (literal, reader.read(node.this)), span_of(node))


def _unquoted_unit(reader: NodeReader, node: exp.Expr, function: str) -> QueryError:
    """The error for a unit without quotes: it is the name of a column, though sqlglot takes it for a unit."""
    problem = f"{function} takes its unit as a text in quotes"
    return reader.error(node, problem, f"for example {function}('day', ts)")


def _to_date(reader: NodeReader, node: exp.Expr) -> Expression:
    """TO_DATE(x), or the node that sqlglot itself puts around the argument of functions such as YEAR."""
    if node.this is None:
        raise reader.error(node.parent or node, "an argument is missing here", "write it")
    is_written = SPAN in node.meta
    if not is_written:
        return reader.read(node.this)
    if node.args.get("format") is not None:
        hint = "a text like '2024-01-31' needs no format; convert other texts before the query"
        raise reader.unsupported(node, "TO_DATE with a format is not supported", hint)
    return Cast(reader.read(node.this), pa.date32(), span_of(node))


def _unix_timestamp(reader: NodeReader, node: exp.Expr) -> Expression:
    """UNIX_TIMESTAMP(x); without an argument it would read the clock, and with two a format: both are refused."""
    call = node.meta.get(CALL)
    if call is None or call.arguments != 1:
        problem = "UNIX_TIMESTAMP takes one timestamp here"
        raise reader.unsupported(node, problem, "cast a text first: CAST(x AS TIMESTAMP)")
    return reader.call(node, "unix_timestamp", node.this)


TIME_FUNCTIONS: dict[type[exp.Expr], ReadNode] = {
    exp.Extract: _extract,
    exp.TimestampTrunc: _date_trunc,
    exp.TsOrDsToDate: _to_date,
    exp.StrToUnix: _unix_timestamp,
}
