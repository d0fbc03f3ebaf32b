"""Partitioned joins: their parts, and the guards that tell which rows belong to which part."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

from braid.model.graph import AttributeClass
from braid.model.partitions import RangePartition, ValuePartition
from braid.model.program import ALWAYS, Guard
from braid.model.statistics import Others
from braid.model.tree import Merge, merges
from braid.planning.cost.histograms import is_nan, is_range, width
from braid.planning.partition.find import Partitionable
from braid.planning.solution.tree import TreeSolution


@dataclass(frozen=True, eq=False)
class Part:
    """A part of the key space: its values, some of them ranges (first, last), and the plan for the rows with them."""

    values: tuple[Hashable, ...]
    solution: TreeSolution

    @property
    def count(self) -> int:
        """The number of values in this part."""
        return sum(map(width, self.values))

    @property
    def site(self) -> str:
        """The site of the result of this part."""
        return self.solution.site(self.solution.tree)


@dataclass(frozen=True, eq=False)
class PartitionedJoin:
    """A join of the whole plan, and its parts, as the partition function named `function` has divided the values.

    `nulls` says whether some rows have null keys. These rows match nothing, so they belong to no part and are not
    shipped.
    """

    join: Partitionable
    parts: tuple[Part, ...]
    function: str
    nulls: bool = False

    @property
    def replaced(self) -> set[Merge]:
        """The joins of the whole plan that the plans of the parts replace."""
        below = {merge for subtree in self.join.inputs for merge in merges(subtree)}
        return set(merges(self.join.merge)) - below

    @cached_property
    def guards(self) -> tuple[Guard, ...]:
        """For each part, the guard that only its rows pass.

        Every value passes exactly one guard, also a value that is in no histogram. Parts that are ranges have limits as
        guards. Otherwise the guard of the first part passes all values that the other guards do not.
        """
        attribute = self.join.attribute
        if len(self.parts) == 1:
            return (Guard(_values(attribute, (), others=True)) if self.nulls else ALWAYS,)
        if self.function == "range" and _have_order([value for part in self.parts for value in part.values]):
            limits = [_first(part.values[0]) for part in self.parts[1:]]
            ranges = zip([None, *limits], [*limits, None], strict=True)
            return tuple(Guard(RangePartition(attribute, first, last)) for first, last in ranges)
        listed = [part.values for part in self.parts[1:]]
        unlisted = _values(attribute, [value for values in listed for value in values], others=True)
        return (Guard(unlisted), *(Guard(_values(attribute, values)) for values in listed))

    def label(self, value: Hashable) -> int:
        """The number of the part that a value, or a range within one part, belongs to."""
        if isinstance(value, Others):
            return 0
        for label, guard in enumerate(self.guards):
            if isinstance(guard.partitions, ValuePartition | RangePartition) and guard.partitions.covers(_first(value)):
                return label
        return 0


def _values(attribute: AttributeClass, values: Sequence[Hashable], *, others: bool = False) -> ValuePartition:
    """The partition with these values, or with `others` all values except these."""
    ranges = tuple(sorted(value for value in values if is_range(value)))
    return ValuePartition(attribute, frozenset(value for value in values if not is_range(value)), others, ranges)


def _first(value: Hashable) -> Hashable:
    return value[0] if is_range(value) else value


def _have_order(values: Sequence[Hashable]) -> bool:
    """Whether a range of the values is a range in the order of their column: all numbers without NaN, or all texts."""
    numbers = all(isinstance(_first(value), int | float) and not is_nan(value) for value in values)
    return numbers or all(isinstance(value, str) for value in values)
