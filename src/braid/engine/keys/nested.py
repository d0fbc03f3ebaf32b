"""Lists and structs as bytes, so that values are equal if and only if their bytes are.

Each part is written as its length, a colon and its bytes; a part that is null, as a tilde.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from braid.model.expressions.types import is_list

NOTHING = pa.scalar(b"", pa.large_binary())
COLON = pa.scalar(b":", pa.large_binary())


def canonical(values: pa.Array) -> pa.Array:
    """The bytes of each value; null for one that is null itself."""
    kind = values.type
    if isinstance(values, pa.ExtensionArray):
        return canonical(values.storage)
    if pa.types.is_dictionary(kind):
        return canonical(values.dictionary_decode())
    if pa.types.is_run_end_encoded(kind):
        return canonical(pc.run_end_decode(values))
    if pa.types.is_struct(kind):
        return _valid_where(values, _joined([_part(field) for field in values.flatten()], len(values)))
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
        # All NaN are one, and so are both zeros.
        numbers = pc.add(values.cast(pa.float64()), 0.0)
        values = pc.if_else(pc.is_nan(numbers), float("nan"), numbers)
    elif pa.types.is_temporal(kind):
        values = values.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    return values.cast(pa.large_string()).cast(pa.large_binary())


def _list(values: pa.Array) -> pa.Array:
    lengths = pc.list_value_length(values).fill_null(0)
    offsets = np.concatenate([[0], np.cumsum(lengths.to_numpy(zero_copy_only=False))]).astype(np.int64)
    # Flattening leaves out what lies under a null list.
    parts = pa.LargeListArray.from_arrays(pa.array(offsets), _part(values.flatten()))
    return pc.binary_join(parts, NOTHING)


def _part(values: pa.Array) -> pa.Array:
    """Each value so that it can be told from what is written before and behind it."""
    written = canonical(values)
    lengths = pc.binary_length(written).cast(pa.string()).cast(pa.large_binary())
    return pc.binary_join_element_wise(lengths, written, COLON, null_handling="emit_null").fill_null(
        pa.scalar(b"~", pa.large_binary())
    )


def _joined(parts: list[pa.Array], length: int) -> pa.Array:
    if not parts:
        return pa.repeat(NOTHING, length)
    return pc.binary_join_element_wise(*parts, NOTHING)


def _valid_where(values: pa.Array, written: pa.Array) -> pa.Array:
    return pc.if_else(values.is_valid(), written, pa.scalar(None, pa.large_binary()))
