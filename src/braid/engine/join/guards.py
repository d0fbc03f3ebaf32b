"""Which heads a guard lets through: by when they start, and by their keys."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from braid.engine.arrays.columns import Flags
from braid.engine.arrays.jit import Words
from braid.engine.join.combinations import Combinations
from braid.engine.keys.hashing import combine_words, key_words
from braid.errors import PlanError
from braid.model.partitions import HashPartitions, Partitioning, RangePartition, ValuePartition
from braid.model.program import Guard


def passing(rows: Combinations, guard: Guard, number: int | None, key_place: int | None) -> Flags:
    """Where a guard lets heads through.

    `number` is that of the attribute class whose keys it looks at, `key_place` where the payload keeps its values, if
    words alone do not tell them apart.
    """
    passed: Flags = (rows.starts >= guard.since) & (rows.starts < guard.until)
    partition = guard.partitions
    if partition is None or number is None:
        return passed
    (alias,) = rows.side.aliases
    words = rows.words(alias, number)
    if isinstance(partition, HashPartitions):
        hashes = combine_words([words]).view(np.uint64) % np.uint64(partition.count)
        passed &= np.isin(hashes, list(partition.members))
        return passed
    values = None if key_place is None else rows.side.window.payload.take(key_place, rows.ids)
    if isinstance(partition, ValuePartition):
        passed &= _is_one_of(partition, words, values) != partition.others
        return passed
    if partition.first is not None:
        passed &= ~_is_below(partition, partition.first, words, values)
    if partition.last is not None:
        passed &= _is_below(partition, partition.last, words, values)
    return passed


def _is_one_of(partition: ValuePartition, words: Words, values: pa.Array | None) -> Flags:
    known, known_words = _values(partition)
    found: Flags
    if values is None:
        found = np.isin(words, known_words)
    else:
        found = pc.is_in(values, value_set=known).to_numpy(zero_copy_only=False)
    return found | _is_within(partition, words, values) if partition.ranges else found


def _is_within(partition: ValuePartition, words: Words, values: pa.Array | None) -> Flags:
    """Where keys are in one of the ranges: in the last that begins before them, if it has not ended."""
    ends = _ends(partition)
    keys = _ordered(ends.type, words) if values is None else _objects(values)
    firsts, lasts = (_ordered(ends.type, key_words(ends)) if values is None else _objects(ends)).reshape(-1, 2).T
    place = np.searchsorted(firsts, keys, side="right") - 1
    within: Flags = (place >= 0) & (keys <= lasts[place])
    return within


@lru_cache(maxsize=1024)
def _ends(partition: ValuePartition) -> pa.Array:
    return _as_keys(partition, [end for first_and_last in partition.ranges for end in first_and_last])


def _ordered(kind: pa.DataType, words: Words) -> Any:
    """Words as numbers in the order of their values."""
    return words.view(np.float64) if pa.types.is_floating(kind) else words


def _objects(values: pa.Array) -> Any:
    found = np.empty(len(values), object)
    found[:] = values.to_pylist()
    return found


@lru_cache(maxsize=1024)
def _values(partition: ValuePartition) -> tuple[pa.Array, Words]:
    values = _as_keys(partition, list(partition.values))
    return values, np.unique(key_words(values))


def _is_below(partition: RangePartition, limit: Any, words: Words, values: pa.Array | None) -> Flags:
    """NaN is below nothing: it is the greatest number."""
    bound = _as_keys(partition, [limit])
    below: Flags
    if values is not None:
        below = pc.less(values, bound[0]).to_numpy(zero_copy_only=False)
    else:
        below = _ordered(bound.type, words) < _ordered(bound.type, key_words(bound))[0]
    return below


def _as_keys(partition: Partitioning, values: list[Any]) -> pa.Array:
    """Values as the keys of their attribute class are compared."""
    kind = partition.attribute_class.type
    if pa.types.is_nested(kind):
        raise PlanError(f"keys of type {kind} are partitioned by hash only; use HashPartitions")
    try:
        return pa.array(values, kind)
    except (pa.ArrowException, TypeError, ValueError) as problem:
        raise PlanError(f"a partition of '{partition.attribute_class}' is by values of {kind}: {problem}") from None


def check_partition(partition: Partitioning) -> None:
    """Refuse a partition whose values are no keys, before any row comes."""
    if isinstance(partition, ValuePartition):
        _values(partition)
        _ends(partition)
    elif isinstance(partition, RangePartition):
        _as_keys(partition, [limit for limit in (partition.first, partition.last) if limit is not None])
