"""Memory layouts of columns: unusual ones are cast to ones that all Arrow functions support, and results cast back.

For example, a string view becomes a large string: the same text, only its layout in memory differs.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from braid.errors import StreamError
from braid.model.expressions.types import is_list


def plain_layout(kind: pa.DataType) -> pa.DataType:
    """The type that is equivalent to `kind` and supported by all Arrow functions; StreamError if there is none."""
    if isinstance(kind, pa.BaseExtensionType):
        return kind if plain_layout(kind.storage_type) == kind.storage_type else plain_layout(kind.storage_type)
    if pa.types.is_run_end_encoded(kind):
        return plain_layout(kind.value_type)
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    if pa.types.is_dictionary(kind):
        # The dictionaries of several batches are combined into one, which may need wider indices.
        return pa.dictionary(pa.int32(), plain_layout(kind.value_type), kind.ordered)
    if pa.types.is_decimal(kind) and kind.scale < 0:
        digits = kind.precision - kind.scale
        return pa.decimal128(digits, 0) if digits <= 38 else pa.decimal256(min(digits, 76), 0)
    if pa.types.is_struct(kind):
        return pa.struct([_plain_inner(field) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_plain_inner(kind.key_field), _plain_inner(kind.item_field), kind.keys_sorted)
    if is_list(kind):
        return _plain_list(kind)
    return kind


def _plain_list(kind: pa.DataType) -> pa.DataType:
    element = _plain_inner(kind.value_field)
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(element, kind.list_size)
    if pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind):
        if element.type != kind.value_type:
            raise StreamError(f"cast it to a list of {element.type}")
        return kind
    return pa.large_list(element) if pa.types.is_large_list(kind) else pa.list_(element)


def _plain_inner(field: pa.Field) -> pa.Field:
    """A field of a nested type in its plain layout; StreamError if Arrow cannot cast it inside another value."""
    if pa.types.is_run_end_encoded(field.type):
        raise StreamError("decode the run-end encoded values inside it (pyarrow.compute.run_end_decode)")
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


def give_back(values: pa.ChunkedArray, original: pa.DataType) -> pa.ChunkedArray:
    """Values of a plain layout, cast back to the type they were given in. Dictionary indices stay wide."""
    if isinstance(original, pa.BaseExtensionType) and values.type != original:
        storage = give_back(values, original.storage_type)
        return pa.chunked_array([pa.ExtensionArray.from_storage(original, chunk) for chunk in storage.chunks], original)
    if pa.types.is_run_end_encoded(original):
        decoded = give_back(values, original.value_type)
        return pc.run_end_encode(decoded, run_end_type=original.run_end_type)
    if values.type == original or pa.types.is_dictionary(original):
        return values
    return values.cast(original)
