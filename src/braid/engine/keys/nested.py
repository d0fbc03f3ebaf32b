"""Lists and structs as bytes, so that values are equal if and only if their bytes are.

Each element or field is encoded as its length, a colon and its bytes; null is encoded as a tilde.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from braid.model.expressions.types import is_list

EMPTY = pa.scalar(b"", pa.large_binary())
COLON = pa.scalar(b":", pa.large_binary())
NULL = pa.scalar(b"~", pa.large_binary())


def canonical(values: pa.Array) -> pa.Array:
    """The bytes of each value; null for null."""
    kind = values.type
    if isinstance(values, pa.ExtensionArray):
        return canonical(values.storage)
    if pa.types.is_dictionary(kind):
        return canonical(values.dictionary_decode())
    if pa.types.is_run_end_encoded(kind):
        return canonical(pc.run_end_decode(values))
    if pa.types.is_struct(kind):
        return _valid_where(values, _joined([_element(field) for field in values.flatten()], len(values)))
    if is_list(kind):
        return _valid_where(values, _list(values))
    return _leaf(values)


def _leaf(values: pa.Array) -> pa.Array:
    kind = values.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return values.cast(pa.large_binary())
    if pa.types.is_fixed_size_binary(kind):
        return values.cast(pa.binary()).cast(pa.large_binary())
    if pa.types.is_floating(kind):
        # All NaNs are equal, and so are both zeros.
        numbers = pc.add(values.cast(pa.float64()), 0.0)
        values = pc.if_else(pc.is_nan(numbers), float("nan"), numbers)
    elif pa.types.is_temporal(kind):
        values = values.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    return values.cast(pa.large_string()).cast(pa.large_binary())


def _list(values: pa.Array) -> pa.Array:
    lengths = pc.list_value_length(values).fill_null(0)
    offsets = np.concatenate([[0], np.cumsum(lengths.to_numpy(zero_copy_only=False))]).astype(np.int64)
    # `flatten` drops the elements that lie under a null list.
    elements = pa.LargeListArray.from_arrays(pa.array(offsets), _element(values.flatten()))
    return pc.binary_join(elements, EMPTY)


def _element(values: pa.Array) -> pa.Array:
    """The encoding of each value, with its length, so that it is clear where it ends when more follows."""
    encoded = canonical(values)
    lengths = pc.binary_length(encoded).cast(pa.string()).cast(pa.large_binary())
    elements = pc.binary_join_element_wise(lengths, encoded, COLON, null_handling="emit_null")
    return elements.fill_null(NULL)


def _joined(fields: list[pa.Array], length: int) -> pa.Array:
    if not fields:
        return pa.repeat(EMPTY, length)
    return pc.binary_join_element_wise(*fields, EMPTY)


def _valid_where(values: pa.Array, encoded: pa.Array) -> pa.Array:
    """The encoding of values, null where a value is null."""
    return pc.if_else(values.is_valid(), encoded, pa.scalar(None, pa.large_binary()))
