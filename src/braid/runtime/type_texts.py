"""Arrow types read back from their texts, as fingerprints have them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa

from braid.errors import ModelError

PARAMETRIC: Mapping[str, Callable[..., pa.DataType]] = {
    r"timestamp\[(\w+), tz=(.+)\]": pa.timestamp,
    r"decimal(128|256)\((\d+), (-?\d+)\)": lambda bits, precision, scale: (
        pa.decimal128 if bits == "128" else pa.decimal256
    )(int(precision), int(scale)),
    r"fixed_size_binary\[(\d+)\]": lambda width: pa.binary(int(width)),
    r"list<(.+)>": lambda item: pa.list_(field_from_text(item)),
    r"large_list<(.+)>": lambda item: pa.large_list(field_from_text(item)),
    r"fixed_size_list<(.+)>\[(\d+)\]": lambda item, size: pa.list_(field_from_text(item), int(size)),
    r"struct<(.*)>": lambda fields: pa.struct([field_from_text(field) for field in _split(fields)]),
    r"dictionary<values=(.+), indices=(\w+), ordered=([01])>": lambda values, indices, ordered: pa.dictionary(
        type_from_text(indices), type_from_text(values), ordered == "1"
    ),
    r"map<(.+)>": lambda entry: pa.map_(*(type_from_text(side) for side in _split(entry))),
}
"""Patterns of types with parameters, and what makes each from the texts of its parameters."""

NOT_NULL = " not null"


def type_from_text(text: str) -> pa.DataType:
    """The type whose text this is; `ModelError` if there is none.

    >>> type_from_text("list<item: struct<a: int64, b: timestamp[us, tz=UTC]>>")
    ListType(list<item: struct<a: int64, b: timestamp[us, tz=UTC]>>)
    """
    try:
        for pattern, make in PARAMETRIC.items():
            parameters = re.fullmatch(pattern, text)
            if parameters is not None:
                return make(*parameters.groups())
        return pa.type_for_alias(text)
    except (ValueError, TypeError) as problem:
        raise ModelError(f"{text!r} is not the text of a column type: {problem}") from problem


def field_from_text(text: str) -> pa.Field:
    """A field whose text is its name, a colon, its type and perhaps that it is never null."""
    name, separator, kind = text.partition(": ")
    if not separator:
        raise ValueError(f"{text!r} has no name")
    return pa.field(name, type_from_text(kind.removesuffix(NOT_NULL)), nullable=not kind.endswith(NOT_NULL))


def _split(text: str) -> Iterator[str]:
    """The parts of a text between commas that are inside no brackets."""
    depth, begin = 0, 0
    for position, character in enumerate(text):
        depth += (character in "<[(") - (character in ">])")
        if depth == 0 and text.startswith(", ", position):
            yield text[begin:position]
            begin = position + 2
    if text:
        yield text[begin:]
