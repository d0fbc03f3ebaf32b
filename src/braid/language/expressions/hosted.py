"""Expressions that the host computes: their text as written, with a place for each column."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.tokenizer_core import Token, TokenType

from braid.errors import QueryError, Span
from braid.language.expressions.node_reader import NodeReader
from braid.language.nodes import SPAN, span_of
from braid.language.refusal import is_event_time, is_refused_everywhere, unsupported_expression
from braid.model.expressions.aggregates import EVENT_TIME_OPERAND
from braid.model.expressions.expression import Column, Expression, HostExpression


def host_expression(reader: NodeReader, node: exp.Expr, *, aggregate: bool = False) -> HostExpression:
    """A node as an expression of the host. What no host computes is refused, wherever it stands in the node.

    An `aggregate` must be one itself, and have no aggregates inside.
    """
    allowed = (node, node.this if isinstance(node, exp.Filter) else node) if aggregate else ()
    for part, value in _parts(reader, node):
        if value is None and not any(part is own for own in allowed) and is_refused_everywhere(part):
            # sqlglot adds CURRENT_TIMESTAMP to UNIX_TIMESTAMP(); it has no place in the text.
            raise _refusal(reader, part if span_of(part) else node)
    span = extent(node)
    if span is None or any("start" not in name.meta for column in node.find_all(exp.Column) for name in column.parts):
        raise reader.error(node, "this expression cannot be given to the host", "compute it before the query")
    operands = dict(_operands(reader, node))
    pieces: list[str] = []
    position = span.start
    in_order = sorted(operands, key=lambda operand_span: operand_span.start)
    for operand_span in in_order:
        pieces.append(_normal(reader.text[position : operand_span.start]))
        position = operand_span.end
    pieces.append(_normal(reader.text[position : span.end]))
    ordered = tuple(operands[operand_span] for operand_span in in_order)
    return HostExpression(tuple(pieces), ordered, None, span, aggregate)


def _refusal(reader: NodeReader, node: exp.Expr) -> QueryError:
    if isinstance(node, exp.AggFunc):
        hint = "aggregates stand in SELECT and HAVING, and not within each other"
        return reader.error(node, f"the aggregate {reader.name_of(node)} cannot stand here", hint)
    return unsupported_expression(node, reader.text, [])


def extent(node: exp.Expr) -> Span | None:
    """The text of a node; that of an operator goes from its first operand to its last."""
    if isinstance(node.meta.get(SPAN), Span):
        return span_of(node)
    extents = [part for part in map(extent, node.iter_expressions()) if part is not None]
    if not extents:
        return span_of(node)
    return Span(min(part.start for part in extents), max(part.end for part in extents))


def _operands(reader: NodeReader, node: exp.Expr) -> Iterator[tuple[Span, Expression]]:
    """The columns in a node with their places in the text; fields of a struct belong to the text around the column.

    CURRENT_TIMESTAMP is the event time of the result.
    """
    for part, value in _parts(reader, node):
        if value is not None:
            yield extent(part) or Span(0, 0), value
        elif is_event_time(part):
            name = span_of(part) or Span(0, 0)
            brackets = re.compile(r"\s*\(\s*\)").match(reader.text, name.end)
            yield Span(name.start, name.end if brackets is None else brackets.end()), EVENT_TIME_OPERAND
        elif isinstance(part, exp.Column) and len(part.parts) == 1:
            yield _place(part.parts[0], part.parts[0]), Column(None, part.name, span_of(part))
        elif isinstance(part, exp.Column):
            qualifier, column = part.parts[:2]
            source = reader.resolve(qualifier.name, span_of(part))
            yield _place(qualifier, column), Column(source, column.name, span_of(part))


def _parts(reader: NodeReader, node: exp.Expr) -> Iterator[tuple[exp.Expr, Expression | None]]:
    """A node and all that is in it, each with the value that it is; what is in such a value is left out."""
    value = reader.value_of(node)
    yield node, value
    if value is None:
        for part in node.iter_expressions():
            yield from _parts(reader, part)


def _place(first: exp.Expr, last: exp.Expr) -> Span:
    return Span(first.meta["start"], last.meta["end"] + 1)


def _normal(text: str) -> str:
    """A piece of text without comments and line breaks, and with the names of functions in lower case."""
    tokens: list[Token] = Spark().tokenize(text)
    if not tokens:
        return " " if text else ""
    normal = ""
    end = -1
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        if token.start <= end:
            continue  # The tokenizer adds a cast for the letter of 5L; the span of the number includes it.
        written = text[token.start : token.end + 1]
        is_name = following is not None and following.token_type == TokenType.L_PAREN and written.isidentifier()
        gap = "" if end + 1 == token.start else " "
        normal += gap + (written.lower() if is_name else written)
        end = token.end
    return normal if end + 1 == len(text) else f"{normal} "
