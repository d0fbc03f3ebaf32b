"""Partitioned joins: their parts, and the guards that tell which rows are whose."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

from braid.model.graph import AttributeClass
from braid.model.partitions import RangePartition, ValuePartition
from braid.model.program import ALWAYS, Guard
from braid.model.tree import Merge, merges
from braid.planning.cost.histograms import is_nan, is_range, width
from braid.planning.partition.find import Partitionable
from braid.planning.solution.tree import TreeSolution


@dataclass(frozen=True, eq=False)
class Part:
    """A part of the key space: its values, some as ranges (first, last), and the plan for the rows that have them."""

    values: tuple[Hashable, ...]
    solution: TreeSolution

    @property
    def count(self) -> int:
        """How many values there are."""
        return sum(map(width, self.values))

    @property
    def site(self) -> str:
        """Where the rows of this part come out."""
        return self.solution.site(self.solution.tree)


@dataclass(frozen=True, eq=False)
class PartitionedJoin:
    """A join of the plan as a whole, and its parts, as a partition function has divided the values.

    `nulls` says whether some rows have no value: they are of no part, and go nowhere.
    """

    join: Partitionable
    parts: tuple[Part, ...]
    function: str
    nulls: bool = False

    @property
    def replaced(self) -> set[Merge]:
        """The joins of the whole plan that the plans of the parts stand for."""
        below = {merge for part in self.join.inputs for merge in merges(part)}
        return set(merges(self.join.merge)) - below

    @cached_property
    def guards(self) -> tuple[Guard, ...]:
        """For each part, which rows are of it. Every value is of exactly one, also one that no histogram has.

        Parts that are ranges are guarded by their limits; of any others, the first takes what the rest does not.
        """
        attribute = self.join.attribute
        if len(self.parts) == 1:
            return (Guard(_values(attribute, (), others=True)) if self.nulls else ALWAYS,)
        if self.function == "range" and _have_order([value for part in self.parts for value in part.values]):
            limits = [_first(part.values[0]) for part in self.parts[1:]]
            pairs = zip([None, *limits], [*limits, None], strict=True)
            return tuple(Guard(RangePartition(attribute, first, last)) for first, last in pairs)
        rest = [part.values for part in self.parts[1:]]
        others = _values(attribute, [value for values in rest for value in values], others=True)
        return (Guard(others), *(Guard(_values(attribute, values)) for values in rest))


def _values(attribute: AttributeClass, values: Sequence[Hashable], *, others: bool = False) -> ValuePartition:
    """Those keys that are one of some values, or all but those."""
    ranges = tuple(sorted(value for value in values if is_range(value)))
    return ValuePartition(attribute, frozenset(value for value in values if not is_range(value)), others, ranges)


def _first(value: Hashable) -> Hashable:
    return value[0] if is_range(value) else value


def _have_order(values: Sequence[Hashable]) -> bool:
    """Whether values sort as histograms sort them: numbers as numbers, texts as texts; there is nothing above NaN."""
    numbers = all(isinstance(_first(value), int | float) and not is_nan(value) for value in values)
    return numbers or all(isinstance(value, str) for value in values)
