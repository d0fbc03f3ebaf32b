"""Join keys as 64-bit words: the value itself if it fits, else a hash.

Equal values always have equal words. Words of an *exact* type are equal only if the values are; for any other type the
values must be compared as well.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from braid.engine.arrays.jit import Records, Words, compiled
from braid.engine.keys.nested import canonical

FULL_HASH = 64
"""The bits of a hash that is not cut."""

_MULTIPLIERS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93))
_NAN_WORD = np.array([np.nan]).view(np.int64)[0]


def is_exact(kind: pa.DataType) -> bool:
    """Whether each word of this type stands for one value."""
    if pa.types.is_decimal128(kind):
        return bool(kind.precision <= 18)
    return not (
        pa.types.is_decimal(kind)
        or pa.types.is_nested(kind)
        or pa.types.is_fixed_size_binary(kind)
        or pa.types.is_large_binary(_as_bytes(kind))
    )


def key_words(values: pa.Array) -> Words:
    """The word of each value. The words of nulls are arbitrary: nulls never match, and are dropped before."""
    kind = values.type
    if len(values) == 0:
        return np.empty(0, np.int64)
    if pa.types.is_nested(kind):
        return _byte_words(canonical(values))
    if pa.types.is_floating(kind):
        return _float_words(values)
    if pa.types.is_decimal(kind) and is_exact(kind):
        return _fixed_words(values)[:, 0].copy()
    if pa.types.is_decimal(kind) or (pa.types.is_fixed_size_binary(kind) and kind.byte_width % 8 == 0):
        return combine_words(list(_fixed_words(values).T))
    if pa.types.is_fixed_size_binary(kind):
        return _byte_words(values.cast(pa.binary()).cast(pa.large_binary()))
    if pa.types.is_large_binary(_as_bytes(kind)):
        return _byte_words(values.cast(pa.large_binary()))
    return _integer_words(values)


def order_words(values: pa.Array) -> Words:
    """Words of floating-point values that sort as Spark sorts the values: minus zero is zero, NaN comes last."""
    words = _float_words(values)
    ordered: Words = words ^ ((words >> 63) & np.int64(2**63 - 1))
    return ordered


def combine_words(columns: Sequence[Words], bits: int = FULL_HASH) -> Words:
    """One hash for the words of several columns, row by row; tests cut it to fewer bits to force collisions."""
    combined = np.zeros(len(columns[0]), np.uint64)
    for words in columns:
        combined = (combined ^ words.view(np.uint64)) * _MULTIPLIERS[0]
        combined = (combined ^ (combined >> np.uint64(32))) * _MULTIPLIERS[1]
    if bits < FULL_HASH:
        combined &= np.uint64((1 << bits) - 1)
    return combined.view(np.int64)


def _as_bytes(kind: pa.DataType) -> pa.DataType:
    """`large_binary` for all types of texts and bytes of any length; any other type as it is."""
    of_bytes = (
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
    )
    return pa.large_binary() if of_bytes else kind


def _integer_words(values: pa.Array) -> Words:
    """Integers, booleans, dates, times and durations: the integers that they are stored as."""
    kind = values.type
    if pa.types.is_temporal(kind):
        values = values.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    if values.type != pa.int64():
        values = values.cast(pa.int64(), safe=False)
    if values.null_count:
        values = values.fill_null(0)
    words: Words = values.to_numpy(zero_copy_only=False)
    return words


def _float_words(values: pa.Array) -> Words:
    numbers = values.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
    words: Words = np.where(numbers == 0.0, 0, numbers.view(np.int64))
    words[np.isnan(numbers)] = _NAN_WORD
    return words


def _fixed_words(values: pa.Array) -> Records:
    """Values of a fixed number of words each, as a table of words, the lowest word first."""
    width = values.type.byte_width // 8
    words = np.frombuffer(values.buffers()[1], np.int64)
    return words[values.offset * width : (values.offset + len(values)) * width].reshape(-1, width)


def _byte_words(values: pa.Array) -> Words:
    _, offsets, data = values.buffers()
    bounds = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1]
    content = np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8)
    words = np.empty(len(values), np.int64)
    _hash_bytes(content, bounds, words)
    return words


@compiled
def _hash_bytes(content: np.ndarray[tuple[int], np.dtype[np.uint8]], bounds: Words, words: Words) -> None:
    """FNV-1a over the bytes of each value, mixed once more because its high bits change slowly."""
    for row in range(len(words)):
        word = np.uint64(0xCBF29CE484222325)
        for byte in range(bounds[row], bounds[row + 1]):
            word = (word ^ np.uint64(content[byte])) * np.uint64(0x100000001B3)
        word = (word ^ (word >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)
        words[row] = np.int64(word ^ (word >> np.uint64(29)))
