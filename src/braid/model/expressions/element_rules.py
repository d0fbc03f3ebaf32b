"""Typing rules for fields of structs, and elements of arrays and maps."""

from __future__ import annotations

import pyarrow as pa
from pyarrow import types

from braid.errors import did_you_mean
from braid.model.expressions.expression import Call, Literal
from braid.model.expressions.rules import Types, check_comparable
from braid.model.expressions.types import TypeMismatch, is_list, kind, plain


def field(call: Call, argument_types: Types) -> pa.DataType:
    """The field of a struct: its name as spelled, or else the only one that differs in case."""
    return plain(argument_types[0]).field(field_index(call, argument_types[0])).type


def field_index(call: Call, struct: pa.DataType) -> int:
    """The position of the field that a call reads."""
    operand, name = call.arguments
    struct = plain(struct)
    if not types.is_struct(struct):
        raise TypeMismatch(
            f"{operand} is {struct}, which has no fields", call, "only structs have fields: a.address.city"
        )
    assert isinstance(name, Literal) and isinstance(name.value, str)
    names = [struct.field(position).name for position in range(struct.num_fields)]
    exact = [position for position, other in enumerate(names) if other == name.value]
    matches = exact or [position for position, other in enumerate(names) if other.lower() == name.value.lower()]
    if len(matches) != 1:
        problem = f"{operand} has {'several fields' if matches else 'no field'} '{name.value}'"
        raise TypeMismatch(problem, call, did_you_mean(name.value, names))
    return matches[0]


def element(call: Call, argument_types: Types) -> pa.DataType:
    """The element of an array at a position from 0 on, or the value of a key in a map; null if there is none."""
    operand, index = call.arguments
    collection, index_type = map(plain, argument_types)
    if types.is_map(collection):
        check_comparable(Call("keys of", (operand,)), collection.key_type, index, index_type)
        return collection.item_type
    if not is_list(collection):
        problem = f"{operand} is {collection}, which has no elements"
        raise TypeMismatch(problem, call, "only arrays and maps have elements: tags[0], prices['x']")
    if kind(index_type) not in ("integer", "null"):
        problem = f"the position in an array is a whole number, not {index} ({index_type})"
        raise TypeMismatch(problem, index, "the first position is 0")
    return collection.value_type
