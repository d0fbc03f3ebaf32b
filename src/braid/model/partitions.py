"""Parts of the key space: which keys a plan, or an instruction of it, is for.

Rows that join on an attribute agree in its value, so that all rows of a combination are of one part. Parts divide the
key space if every value is of exactly one of them, values that nobody has seen yet included.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from braid.errors import PlanError
from braid.model.checks import check
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
    """The keys that are one of `values`; with `others`, all keys but those."""

    attribute_class: AttributeClass
    values: frozenset[Hashable]
    others: bool = False

    def __post_init__(self) -> None:
        _check_class(self.attribute_class)
        check(self.values, frozenset, "the values of a partition", PlanError)
        check(self.others, bool, "whether a partition is all other values", PlanError)
        if None in self.values:
            raise PlanError("null is no key: it joins nothing, and is of no partition")

    def covers(self, key: Hashable) -> bool:
        return (key in self.values) != self.others


@dataclass(frozen=True, slots=True)
class RangePartition:
    """The keys from `first` on and below `last`; None where there is no such limit.

    NaN is below nothing: it is the greatest number.
    """

    attribute_class: AttributeClass
    first: Any = None
    last: Any = None

    def __post_init__(self) -> None:
        _check_class(self.attribute_class)
        if self.first is not None and self.last is not None and not self.first < self.last:
            raise PlanError(f"no key lies from {self.first!r} on and below {self.last!r}")

    def covers(self, key: Any) -> bool:
        return (self.first is None or not key < self.first) and (self.last is None or key < self.last)


Partitioning = HashPartitions | ValuePartition | RangePartition


def _check_class(given: object) -> None:
    check(given, AttributeClass, "what is partitioned", PlanError)
