"""Typing rules of string functions. Constant patterns are checked here too."""

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
    """LIKE and ILIKE: the value, the pattern and, if it is not a backslash, the escape character."""
    text(call, types)
    escape = "\\"
    if len(call.arguments) == 3:
        argument = call.arguments[2]
        if not isinstance(argument, Literal) or not isinstance(argument.value, str) or len(argument.value) != 1:
            raise TypeMismatch("ESCAPE takes one character", argument, "for example LIKE '50!%' ESCAPE '!'")
        escape = argument.value
    pattern = call.arguments[1]
    if isinstance(pattern, Literal) and isinstance(pattern.value, str) and like_parts(pattern.value, escape) is None:
        raise TypeMismatch(
            f"in this pattern the escape character {escape} comes before something other than %, _ or {escape}",
            pattern,
            f"write {escape}{escape} for {escape} itself",
        )
    return pa.bool_()


def regular_expression(call: Call, types: Types) -> pa.DataType:
    text(call, types)
    pattern = call.arguments[1]
    if isinstance(pattern, Literal) and isinstance(pattern.value, str):
        try:
            pc.match_substring_regex(pa.array([""]), pattern.value)
        except pa.ArrowInvalid as error:
            reason = str(error).removeprefix("Invalid regular expression: ")
            problem = f"this is not a valid regular expression: {reason}"
            raise TypeMismatch(problem, pattern, "use the syntax of RE2") from None
    return pa.bool_()


def size(call: Call, types: Types) -> pa.DataType:
    if kind(types[0]) not in ("string", "binary", "null"):
        require(call.arguments[0], types[0], "string", name(call))
    return pa.int32()


def concatenation(call: Call, types: Types) -> pa.DataType:
    """As in Spark, arguments of other types are cast to strings."""
    for argument, type_ in zip(call.arguments, types, strict=True):
        if kind(type_) in ("nested", "binary", "duration", "time"):
            raise TypeMismatch(f"{type_} cannot be concatenated", argument, "convert it to a string before the query")
    return pa.string()


def part_of_text(call: Call, types: Types) -> pa.DataType:
    require(call.arguments[0], types[0], "string", name(call))
    for argument, type_ in zip(call.arguments[1:], types[1:], strict=True):
        require(argument, type_, "integer", name(call))
    return pa.string()
