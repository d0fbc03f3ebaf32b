"""Layouts of columns: those that few of Arrow's functions know become ones that all know, and results are given back.

Text in a string view is the same text in a large string; only its place in memory differs.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from braid.errors import StreamError
from braid.model.expressions.types import is_list


def plain_layout(kind: pa.DataType) -> pa.DataType:
    """A layout that all of Arrow's functions know; StreamError, which says what to do, where there is none."""
    if isinstance(kind, pa.BaseExtensionType):
        return kind if plain_layout(kind.storage_type) == kind.storage_type else plain_layout(kind.storage_type)
    if pa.types.is_run_end_encoded(kind):
        return plain_layout(kind.value_type)
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    if pa.types.is_dictionary(kind):
        # Dictionaries of several batches become one, which may need wider indices.
        return pa.dictionary(pa.int32(), plain_layout(kind.value_type), kind.ordered)
    if pa.types.is_decimal(kind) and kind.scale < 0:
        wide = kind.precision - kind.scale
        return pa.decimal128(wide, 0) if wide <= 38 else pa.decimal256(min(wide, 76), 0)
    if pa.types.is_struct(kind):
        return pa.struct([_plain_part(field) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_plain_part(kind.key_field), _plain_part(kind.item_field), kind.keys_sorted)
    if is_list(kind):
        return _plain_list(kind)
    return kind


def _plain_list(kind: pa.DataType) -> pa.DataType:
    part = _plain_part(kind.value_field)
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(part, kind.list_size)
    if pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind):
        if part.type != kind.value_type:
            raise StreamError(f"cast it to a list of {part.type}")
        return kind
    return pa.large_list(part) if pa.types.is_large_list(kind) else pa.list_(part)


def _plain_part(field: pa.Field) -> pa.Field:
    """The layout of what is inside another value: only what Arrow casts there and back."""
    if pa.types.is_run_end_encoded(field.type):
        raise StreamError("decode what is run-end encoded inside it (pyarrow.compute.run_end_decode)")
    layout = plain_layout(field.type)
    if isinstance(field.type, pa.BaseExtensionType) and layout != field.type:
        raise StreamError(f"cast {field.type} inside it to {layout}")
    return field.with_type(layout)


def lay_out(values: pa.Array, layout: pa.DataType) -> pa.Array:
    """Values in the plain layout of their type."""
    if values.type == layout:
        return values
    if isinstance(values, pa.ExtensionArray):
        return lay_out(values.storage, layout)
    if pa.types.is_run_end_encoded(values.type):
        return lay_out(pc.run_end_decode(values), layout)
    return values.cast(layout)


def give_back(values: pa.ChunkedArray, given: pa.DataType) -> pa.ChunkedArray:
    """Values of a plain layout in the type they were given in, except that indices of dictionaries stay wide."""
    if isinstance(given, pa.BaseExtensionType) and values.type != given:
        storage = give_back(values, given.storage_type)
        return pa.chunked_array([pa.ExtensionArray.from_storage(given, chunk) for chunk in storage.chunks], given)
    if pa.types.is_run_end_encoded(given):
        whole = give_back(values, given.value_type)
        return pc.run_end_encode(whole, run_end_type=given.run_end_type)
    if values.type == given or pa.types.is_dictionary(given):
        return values
    return values.cast(given)
