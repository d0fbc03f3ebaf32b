"""Join keys as 64-bit words: the value itself where it fits, a hash where it does not.

Two equal values always have the same word. Words of an *exact* type are equal only if the values are; for the other
types the values must be compared too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from braid.engine.arrays.jit import Records, Words, compiled
from braid.engine.keys.nested import canonical

FULL_HASH = 64

_MULTIPLIERS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93))
_NAN_WORD = np.array([np.nan]).view(np.int64)[0]


def is_exact(kind: pa.DataType) -> bool:
    """Whether words of this type stand for one value each."""
    if pa.types.is_decimal128(kind):
        return bool(kind.precision <= 18)
    return not (
        pa.types.is_decimal(kind)
        or pa.types.is_nested(kind)
        or pa.types.is_fixed_size_binary(kind)
        or pa.types.is_large_binary(_as_bytes(kind))
    )


def key_words(values: pa.Array) -> Words:
    """The word of each value. Nulls get any word: who joins has left them out before."""
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


def combine_words(parts: Sequence[Words], bits: int = FULL_HASH) -> Words:
    """One hash word for several; cut to fewer bits, it collides on purpose."""
    combined = np.zeros(len(parts[0]), np.uint64)
    for part in parts:
        combined = (combined ^ part.view(np.uint64)) * _MULTIPLIERS[0]
        combined = (combined ^ (combined >> np.uint64(32))) * _MULTIPLIERS[1]
    if bits < FULL_HASH:
        combined &= np.uint64((1 << bits) - 1)
    return combined.view(np.int64)


def _as_bytes(kind: pa.DataType) -> pa.DataType:
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
    """Numbers, truth values, dates, times and durations: what they are stored as."""
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
    """Values of a fixed number of whole words each, as a table of words, the lowest first."""
    width = values.type.byte_width // 8
    words = np.frombuffer(values.buffers()[1], np.int64)
    return words[values.offset * width : (values.offset + len(values)) * width].reshape(-1, width)


def _byte_words(values: pa.Array) -> Words:
    _, offsets, data = values.buffers()
    bounds = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1]
    letters = np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8)
    words = np.empty(len(values), np.int64)
    _hash_bytes(letters, bounds, words)
    return words


@compiled
def _hash_bytes(letters: np.ndarray[tuple[int], np.dtype[np.uint8]], bounds: Words, words: Words) -> None:
    """FNV-1a over the bytes of each value, stirred once more because its high bits mix slowly."""
    for row in range(len(words)):
        word = np.uint64(0xCBF29CE484222325)
        for place in range(bounds[row], bounds[row + 1]):
            word = (word ^ np.uint64(letters[place])) * np.uint64(0x100000001B3)
        word = (word ^ (word >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)
        words[row] = np.int64(word ^ (word >> np.uint64(29)))
