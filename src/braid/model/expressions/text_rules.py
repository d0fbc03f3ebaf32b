"""Typing rules of the functions of text. Patterns that are written in the query are checked here too."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from braid.model.expressions.expression import Call, Literal
from braid.model.expressions.patterns import like_parts
from braid.model.expressions.rules import Types, name, require
from braid.model.expressions.types import TypeMismatch, kind


def text(call: Call, types: Types) -> pa.DataType:
    for argument, type_ in zip(call.arguments, types, strict=True):
        require(argument, type_, "string", name(call))
    return pa.string()


def text_test(call: Call, types: Types) -> pa.DataType:
    text(call, types)
    return pa.bool_()


def like(call: Call, types: Types) -> pa.DataType:
    """LIKE and ILIKE: value, pattern and, if it is no backslash, the sign that makes the next one plain."""
    text(call, types)
    escape = "\\"
    if len(call.arguments) == 3:
        written = call.arguments[2]
        if not isinstance(written, Literal) or not isinstance(written.value, str) or len(written.value) != 1:
            raise TypeMismatch("ESCAPE takes one character", written, "for example LIKE '50!%' ESCAPE '!'")
        escape = written.value
    wanted = call.arguments[1]
    if isinstance(wanted, Literal) and isinstance(wanted.value, str) and like_parts(wanted.value, escape) is None:
        raise TypeMismatch(
            f"in this pattern {escape} stands before something other than %, _ or {escape}",
            wanted,
            f"write {escape}{escape} for {escape} itself",
        )
    return pa.bool_()


def regular_expression(call: Call, types: Types) -> pa.DataType:
    text(call, types)
    wanted = call.arguments[1]
    if isinstance(wanted, Literal) and isinstance(wanted.value, str):
        try:
            pc.match_substring_regex(pa.array([""]), wanted.value)
        except pa.ArrowInvalid as problem:
            reason = str(problem).removeprefix("Invalid regular expression: ")
            raise TypeMismatch(f"this is no regular expression: {reason}", wanted, "the syntax is RE2's") from None
    return pa.bool_()


def size(call: Call, types: Types) -> pa.DataType:
    if kind(types[0]) not in ("string", "binary", "null"):
        require(call.arguments[0], types[0], "string", name(call))
    return pa.int32()


def concatenation(call: Call, types: Types) -> pa.DataType:
    """Anything that can be written as text is, as in Spark."""
    for argument, type_ in zip(call.arguments, types, strict=True):
        if kind(type_) in ("nested", "binary", "duration", "time"):
            raise TypeMismatch(f"{type_} cannot be joined to a text", argument, "make a text of it before the query")
    return pa.string()


def part_of_text(call: Call, types: Types) -> pa.DataType:
    require(call.arguments[0], types[0], "string", name(call))
    for argument, type_ in zip(call.arguments[1:], types[1:], strict=True):
        require(argument, type_, "integer", name(call))
    return pa.string()
