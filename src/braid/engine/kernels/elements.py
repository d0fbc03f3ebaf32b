"""Fields of structs, and elements of arrays and maps. What is not there is null."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from braid.engine.kernels.casts import Conversion
from braid.engine.kernels.compare import Types, compare_in
from braid.engine.kernels.values import Builder, Datum, Kernel
from braid.model.expressions.element_rules import field_index
from braid.model.expressions.expression import Call
from braid.model.expressions.types import comparison_type, plain


def _field(call: Call, argument_types: Types, result: pa.DataType) -> Kernel:
    position = field_index(call, argument_types[0])
    to_struct = Conversion(argument_types[0], plain(argument_types[0]))
    return lambda struct, name: pc.struct_field(to_struct(struct), [position])


def _element(call: Call, argument_types: Types, result: pa.DataType) -> Kernel:
    collection = plain(argument_types[0])
    if types.is_null(argument_types[1]):
        return lambda collections, index: pa.nulls(len(collections), result)
    if types.is_map(collection):
        return _value_of_key(collection, argument_types)
    to_list = Conversion(argument_types[0], collection)
    return lambda lists, index: _at(to_list(lists), _positions(index, len(lists)))


def _value_of_key(collection: pa.MapType, argument_types: Types) -> Kernel:
    key_types = (collection.key_type, argument_types[1])
    equal = compare_in("equal", key_types, comparison_type(*key_types))

    def evaluate(maps: pa.MapArray, key: Datum) -> pa.Array:
        offsets = np.asarray(maps.offsets)
        owners = np.repeat(np.arange(len(maps)), np.diff(offsets))
        keys = maps.keys.slice(offsets[0], offsets[-1] - offsets[0])
        wanted = key.take(pa.array(owners)) if isinstance(key, pa.Array) else key
        matches = np.flatnonzero(pc.fill_null(equal(keys, wanted), False))
        positions = np.full(len(maps), -1)
        positions[owners[matches]] = matches + offsets[0]
        absent = (positions < 0) | np.asarray(maps.is_null())
        return maps.items.take(pa.array(positions, mask=absent))

    return evaluate


def _positions(index: Datum, length: int) -> pa.Array:
    return index.cast(pa.int64()) if isinstance(index, pa.Array) else pa.repeat(index.cast(pa.int64()), length)


def _at(lists: pa.Array, positions: pa.Array) -> pa.Array:
    """The element of each list, in any layout, at its position, counted from 0."""
    lengths = np.asarray(pc.list_value_length(lists).fill_null(0))
    starts = np.cumsum(lengths) - lengths
    wanted = np.asarray(positions.fill_null(-1))
    absent = (wanted < 0) | (wanted >= lengths)
    # `flatten` leaves out what lies under a null list.
    return lists.flatten().take(pa.array(starts + wanted, mask=absent))


BUILDERS: dict[str, Builder] = {"field": _field, "element": _element}
