"""Parts of the key space: which keys a plan, or an instruction of it, is for.

Rows that join on an attribute agree in its value, so that all rows of a combination are of one part. Parts divide the
key space if every value is of exactly one of them, values that nobody has seen yet included.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from braid.errors import PlanError
from braid.model.checks import check, check_each
from braid.model.graph import AttributeClass


@dataclass(frozen=True, slots=True)
class HashPartitions:
    """Some of the `count` hash partitions of the key space of an attribute class."""

    attribute_class: AttributeClass
    count: int
    members: frozenset[int]

    def __post_init__(self) -> None:
        _check_class(self.attribute_class)
        check(self.count, int, "the number of partitions", PlanError)
        check(self.members, frozenset, "the partitions chosen", PlanError)
        if self.count < 1 or not all(isinstance(member, int) and 0 <= member < self.count for member in self.members):
            raise PlanError(f"partitions are numbered 0 to {self.count - 1}, not {sorted(self.members, key=str)}")


@dataclass(frozen=True, slots=True)
class ValuePartition:
    """The keys that are one of `values`, or in one of `ranges`; with `others`, all keys but those.

    A range is its first and its last key and what lies between; they come in order. Null is no key.
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
            raise PlanError("null is no key: it joins nothing, and is of no partition")
        check_each(self.ranges, tuple, "the ranges of a partition", PlanError)
        if not _in_order(self.ranges):
            raise PlanError(f"ranges are pairs (first, last) in order, with no key in two, not {self.ranges!r:.200}")

    def covers(self, key: Any) -> bool:
        if key is None:
            return False
        within = any(first <= key <= last for first, last in self.ranges)
        return (key in self.values or within) != self.others


@dataclass(frozen=True, slots=True)
class RangePartition:
    """The keys from `first` on and below `last`; None where there is no such limit.

    NaN is below nothing: it is the greatest number. Null is no key.
    """

    attribute_class: AttributeClass
    first: Any = None
    last: Any = None

    def __post_init__(self) -> None:
        _check_class(self.attribute_class)
        if self.first is not None and self.last is not None and not self.first < self.last:
            raise PlanError(f"no key lies from {self.first!r} on and below {self.last!r}")

    def covers(self, key: Any) -> bool:
        if key is None:
            return False
        return (self.first is None or not key < self.first) and (self.last is None or key < self.last)


Partitioning = HashPartitions | ValuePartition | RangePartition


def _in_order(ranges: tuple[tuple[Any, Any], ...]) -> bool:
    return all(len(ends) == 2 and ends[0] <= ends[1] for ends in ranges) and all(
        one[1] < following[0] for one, following in pairwise(ranges)
    )


def _check_class(given: object) -> None:
    check(given, AttributeClass, "what is partitioned", PlanError)
