"""Keys and the 64-bit words that stand for them in sketches, where a word tells the key."""

from __future__ import annotations

from collections.abc import Iterable
from math import isnan, nan
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Words = NDArray[np.int64]
Floats = NDArray[np.float64]


def tells_keys(kind: pa.DataType | None) -> bool:
    """Whether a key can be read from its word, and words have the order of keys."""
    if kind is None or kind == pa.uint64():
        return False
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_date32(kind)
        or pa.types.is_timestamp(kind)
    )


def numbers_of(words: Words, kind: pa.DataType) -> Floats:
    """The words as numbers in the order of their keys."""
    numbers: Floats = words.view(np.float64) if pa.types.is_floating(kind) else words.astype(np.float64)
    return numbers


def keys_of(words: Iterable[int], kind: pa.DataType) -> list[Any]:
    """The keys that words stand for."""
    array = np.fromiter(words, np.int64)
    if pa.types.is_floating(kind):
        values = pa.array(array.view(np.float64)).cast(kind, safe=False)
    elif pa.types.is_date32(kind):
        values = pa.array(array.astype(np.int32)).view(kind)
    elif pa.types.is_timestamp(kind):
        values = pa.array(array).view(kind)
    else:
        values = pa.array(array).cast(kind)
    return [nan if isinstance(key, float) and isnan(key) else key for key in values.to_pylist()]


def words_of(keys: Iterable[Any], kind: pa.DataType) -> list[int]:
    """The words that stand for keys."""
    values = pa.array(list(keys), kind)
    if pa.types.is_floating(kind):
        numbers = values.cast(pa.float64()).to_numpy(zero_copy_only=False)
        return [int(word) for word in np.where(numbers == 0.0, 0.0, numbers).view(np.int64)]
    if pa.types.is_temporal(kind):
        values = values.view(pa.int32() if pa.types.is_date32(kind) else pa.int64())
    return [int(word) for word in values.to_pylist()]


def key_at(number: float, kind: pa.DataType) -> Any:
    """The key at or just above a number in the order of keys."""
    if pa.types.is_floating(kind):
        return keys_of(np.array([number]).view(np.int64).tolist(), kind)[0]
    return keys_of([int(np.ceil(number))], kind)[0]
