"""Encode Arrow values of any type as integers: equal values have equal codes, different values different ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

LARGEST_CODE = 2**62
"""Combined codes stay below this, so that they fit 64 bits."""


def encode(array: pa.Array) -> np.ndarray:
    """A code from 0 on for each value. Null has a code of its own; all NaN have one code, and so have -0.0 and 0.0."""
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return encode(array.storage)
    if pa.types.is_dictionary(kind):
        return encode(array.dictionary_decode())
    if pa.types.is_run_end_encoded(kind):
        return encode(pc.run_end_decode(array))
    if pa.types.is_struct(kind):
        return _encode_struct(array)
    if pa.types.is_nested(kind):
        return _encode_nested(array)
    if pa.types.is_floating(kind):
        return _encode_floating(array)
    return _encode_plain(array)


def combine_codes(columns: Sequence[np.ndarray]) -> np.ndarray:
    """One code for each row from the codes of its columns; codes are numbered from 0 on without gaps."""
    combined = columns[0]
    for codes in columns[1:]:
        width = int(codes.max(initial=0)) + 1
        if (int(combined.max(initial=0)) + 1) * width > LARGEST_CODE:
            combined = _dense(combined)
        combined = combined * width + codes
    return _dense(combined)


def gather(column: pa.ChunkedArray, rows: pa.Array) -> pa.ChunkedArray:
    """The values of a column at the given rows, also for types for which Arrow does not implement `take`."""
    if pa.types.is_string_view(column.type) or pa.types.is_binary_view(column.type):
        return column.cast(plain_type(column.type)).take(rows).cast(column.type)
    if pa.types.is_run_end_encoded(column.type):
        values = pc.run_end_decode(column).take(rows)
        return pc.run_end_encode(values, run_end_type=column.type.run_end_type)
    try:
        return column.take(rows)
    except pa.ArrowNotImplementedError:
        # Views inside lists and structs. They are rare, so one by one is fast enough.
        array = column.combine_chunks()
        slices = [array.slice(row, 1) for row in rows.to_pylist()]
        return pa.chunked_array([pa.concat_arrays(slices)] if slices else [], column.type)


def gather_rows(table: pa.Table, rows: pa.Array) -> pa.Table:
    return pa.Table.from_arrays([gather(column, rows) for column in table.columns], schema=table.schema)


def plain_type(kind: pa.DataType) -> pa.DataType:
    """A type without its encoding: for example, `string` for all layouts of strings."""
    if pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_decimal32(kind) or pa.types.is_decimal64(kind):
        return pa.decimal128(kind.precision, kind.scale)
    return kind


def _dense(codes: np.ndarray) -> np.ndarray:
    """The codes renumbered from 0 on without gaps."""
    return np.asarray(pa.array(codes).dictionary_encode().indices).astype(np.int64)


def _encode_plain(array: pa.Array) -> np.ndarray:
    if pa.types.is_null(array.type):
        return np.zeros(len(array), np.int64)
    encoded = pc.dictionary_encode(array.cast(plain_type(array.type)), null_encoding="encode")
    return np.asarray(encoded.indices).astype(np.int64)


def _encode_floating(array: pa.Array) -> np.ndarray:
    values = array.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0  # -0.0 becomes 0.0
    values = np.where(np.isnan(values), np.nan, values)  # One bit pattern for all NaN.
    bits = pa.array(values.view(np.int64), mask=np.asarray(array.is_null()))
    return _encode_plain(bits)


def _encode_struct(array: pa.StructArray) -> np.ndarray:
    present = np.asarray(array.is_valid()).astype(np.int64)
    # A field of a null struct may hold any value; `flatten` makes it null.
    return combine_codes([present, *(encode(field) for field in array.flatten())])


def _encode_nested(array: pa.Array) -> np.ndarray:
    """Lists and maps: two are equal if their elements have the same codes in the same order."""
    if pa.types.is_union(array.type):
        raise AssertionError("columns of a union type cannot be compared")
    if pa.types.is_map(array.type):
        elements = pa.StructArray.from_arrays([array.keys, array.items], ["key", "value"])
    else:
        elements = array.values
    codes = encode(elements)
    code_of: dict[bytes | None, int] = {}
    starts, ends = _bounds(array)
    result = np.empty(len(array), np.int64)
    for row, (start, end, valid) in enumerate(zip(starts, ends, array.is_valid().to_pylist(), strict=True)):
        key = codes[start:end].tobytes() if valid else None
        result[row] = code_of.setdefault(key, len(code_of))
    return result


def _bounds(array: pa.Array) -> tuple[list[int], list[int]]:
    """The positions at which the elements of each list begin and end in the array of all elements."""
    kind = array.type
    if pa.types.is_fixed_size_list(kind):
        first = np.arange(array.offset, array.offset + len(array)) * kind.list_size
        return first.tolist(), (first + kind.list_size).tolist()
    offsets = np.asarray(array.offsets)
    if pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind):
        offsets = offsets[: len(array)]
        return offsets.tolist(), (offsets + np.asarray(array.sizes)).tolist()
    return offsets[:-1].tolist(), offsets[1:].tolist()
