"""Partitions of the key space: the keys that a plan, or one of its instructions, applies to.

Rows that join on an attribute have the same value of it, so all rows of a combination belong to one partition. A set
of partitions divides the key space if every value, also one not seen yet, belongs to exactly one of them.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from braid.errors import PlanError
from braid.model.checks import check, check_each
from braid.model.graph import AttributeClass

_MULTIPLIERS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93))
"""Odd constants that spread the bits of a word."""


@dataclass(frozen=True, slots=True)
class HashPartitions:
    """The keys in some hash classes: those numbered `members`, of `count` classes."""

    attribute_class: AttributeClass
    count: int
    members: frozenset[int]

    def __post_init__(self) -> None:
        _check_class(self.attribute_class)
        check(self.count, int, "the number of hash classes", PlanError)
        check(self.members, frozenset, "the hash classes of a partition", PlanError)
        if self.count < 1:
            raise PlanError(f"there is at least 1 hash class, not {self.count}")
        if not all(isinstance(member, int) and 0 <= member < self.count for member in self.members):
            raise PlanError(f"hash classes are numbered 0 to {self.count - 1}, not {sorted(self.members, key=str)}")


@dataclass(frozen=True, slots=True)
class ValuePartition:
    """The keys that are one of `values` or within one of `ranges`; with `others`, all keys except these.

    A range is a pair of its first and its last key, both included; ranges are sorted. Null is not a key.
    """

    attribute_class: AttributeClass
    values: frozenset[Hashable]
    others: bool = False
    ranges: tuple[tuple[Any, Any], ...] = ()

    def __post_init__(self) -> None:
        _check_class(self.attribute_class)
        check(self.values, frozenset, "the values of a partition", PlanError)
        check(self.others, bool, "whether a partition is all other values", PlanError)
        if None in self.values:
            raise PlanError("null is not a key: it joins nothing and belongs to no partition; leave it out")
        check_each(self.ranges, tuple, "the ranges of a partition", PlanError)
        if not _in_order(self.ranges):
            raise PlanError(f"ranges are sorted pairs (first, last) without overlaps, not {self.ranges!r:.200}")

    def covers(self, key: Any) -> bool:
        if key is None:
            return False
        listed = key in self.values or any(first <= key <= last for first, last in self.ranges)
        return not listed if self.others else listed


@dataclass(frozen=True, slots=True)
class RangePartition:
    """The keys that are at least `first` and less than `below`; None for no limit.

    NaN counts as the greatest number. Null is not a key.
    """

    attribute_class: AttributeClass
    first: Any = None
    below: Any = None

    def __post_init__(self) -> None:
        _check_class(self.attribute_class)
        if self.first is not None and self.below is not None and not self.first < self.below:
            raise PlanError(f"the range from {self.first!r} to below {self.below!r} has no key; give a larger end")

    def covers(self, key: Any) -> bool:
        if key is None:
            return False
        return (self.first is None or not key < self.first) and (self.below is None or key < self.below)


Partitioning = HashPartitions | ValuePartition | RangePartition


def hash_classes(words: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """The hash class of each key, given as a 64-bit word, out of `count` classes."""
    mixed = words.view(np.uint64) * _MULTIPLIERS[0]
    mixed = (mixed ^ (mixed >> np.uint64(32))) * _MULTIPLIERS[1]
    return (mixed % np.uint64(count)).astype(np.int64)


def _in_order(ranges: tuple[tuple[Any, Any], ...]) -> bool:
    if not all(len(ends) == 2 and ends[0] <= ends[1] for ends in ranges):
        return False
    return all(earlier[1] < later[0] for earlier, later in pairwise(ranges))


def _check_class(value: object) -> None:
    check(value, AttributeClass, "the attribute class of a partition", PlanError)
