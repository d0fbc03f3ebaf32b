"""Which keys are in a partition."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from braid.engine.arrays.columns import Flags
from braid.engine.arrays.jit import Words
from braid.engine.keys.hashing import key_words
from braid.errors import PlanError
from braid.model.partitions import HashPartitions, Partitioning, RangePartition, ValuePartition, hash_classes


def covered(partition: Partitioning, words: Words, values: pa.Array | None) -> Flags:
    """Which keys are in a partition, given their words, and their values if words alone do not tell them apart."""
    inside: Flags
    if isinstance(partition, HashPartitions):
        inside = np.isin(hash_classes(words, partition.count), list(partition.members))
        return inside
    if isinstance(partition, ValuePartition):
        inside = _is_one_of(partition, words, values) != partition.others
        return inside
    inside = np.ones(len(words), np.bool_)
    if partition.first is not None:
        inside &= ~_is_below(partition, partition.first, words, values)
    if partition.below is not None:
        inside &= _is_below(partition, partition.below, words, values)
    return inside


def _is_one_of(partition: ValuePartition, words: Words, values: pa.Array | None) -> Flags:
    """Which keys are among the values or in the ranges of a partition."""
    partition_values, partition_words = _values(partition)
    listed: Flags
    if values is None:
        listed = np.isin(words, partition_words)
    else:
        listed = pc.is_in(values, value_set=partition_values).to_numpy(zero_copy_only=False)
    return listed | _is_within(partition, words, values) if partition.ranges else listed


def _is_within(partition: ValuePartition, words: Words, values: pa.Array | None) -> Flags:
    """Which keys are in one of the ranges: a key can only be in the last range that begins at or before it."""
    ends = _range_ends(partition)
    if values is None:
        keys, bounds = _ordered(ends.type, words), _ordered(ends.type, key_words(ends))
    else:
        keys, bounds = _objects(values), _objects(ends)
    firsts, lasts = bounds.reshape(-1, 2).T
    range_number = np.searchsorted(firsts, keys, side="right") - 1
    within: Flags = (range_number >= 0) & (keys <= lasts[range_number])
    return within


@lru_cache(maxsize=1024)
def _range_ends(partition: ValuePartition) -> pa.Array:
    """First and last of each range in turn, as keys."""
    return _as_keys(partition, [end for first_and_last in partition.ranges for end in first_and_last])


def _ordered(kind: pa.DataType, words: Words) -> Any:
    """Words as numbers that are ordered as their values are."""
    return words.view(np.float64) if pa.types.is_floating(kind) else words


def _objects(values: pa.Array) -> Any:
    objects = np.empty(len(values), object)
    objects[:] = values.to_pylist()
    return objects


@lru_cache(maxsize=1024)
def _values(partition: ValuePartition) -> tuple[pa.Array, Words]:
    """The values of a partition as keys, and their distinct words."""
    values = _as_keys(partition, list(partition.values))
    return values, np.unique(key_words(values))


def _is_below(partition: RangePartition, limit: Any, words: Words, values: pa.Array | None) -> Flags:
    """Which keys are below a limit. NaN is not below any: it is the greatest number."""
    bound = _as_keys(partition, [limit])
    below: Flags
    if values is not None:
        below = pc.less(values, bound[0]).to_numpy(zero_copy_only=False)
    else:
        below = _ordered(bound.type, words) < _ordered(bound.type, key_words(bound))[0]
    return below


def _as_keys(partition: Partitioning, values: list[Any]) -> pa.Array:
    """Values in the type in which the keys of their attribute class are compared."""
    kind = partition.attribute_class.type
    if pa.types.is_nested(kind):
        raise PlanError(f"keys of type {kind} are partitioned by hash only; use HashPartitions")
    try:
        return pa.array(values, kind)
    except (pa.ArrowException, TypeError, ValueError) as problem:
        raise PlanError(f"a partition of '{partition.attribute_class}' takes values of {kind}: {problem}") from None


def check_partition(partition: Partitioning) -> None:
    """Raise an error if values of a partition are not keys, before any row comes."""
    if isinstance(partition, ValuePartition):
        _values(partition)
        _range_ends(partition)
    elif isinstance(partition, RangePartition):
        _as_keys(partition, [limit for limit in (partition.first, partition.below) if limit is not None])
