"""A join tree some of whose joins have a plan for each part of the key space."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from braid.model.plan import Plan
from braid.model.tree import JoinTree, Merge, merges
from braid.planning.cost.bill import Bill, Charge
from braid.planning.partition.parts import PartitionedJoin
from braid.planning.problem import Problem
from braid.planning.solution.tree import TreeSolution


@dataclass(frozen=True)
class PartitionedSolution:
    """A plan some of whose joins have a plan for each part of the key space."""

    whole: TreeSolution
    joins: tuple[PartitionedJoin, ...]
    considered: int

    @property
    def problem(self) -> Problem:
        return self.whole.problem

    @property
    def tree(self) -> JoinTree:
        return self.whole.tree

    @property
    def plan(self) -> Plan:
        return self.whole.plan

    @property
    def placement(self) -> Mapping[Merge, str]:
        return self.whole.placement

    @property
    def layout(self) -> str:
        lines = [self.whole.layout]
        for found in self.joins:
            divided = "one part" if len(found.parts) == 1 else f"{len(found.parts)} parts"
            lines.append(f"{found.join.merge} in {divided} of {found.join.attribute}")
            for number, part in enumerate(found.parts):
                lines.append(f"  part {number} ({part.count:,} values): {part.solution.tree} at {part.site}")
        return "\n".join(lines)

    @property
    def bill(self) -> Bill:
        return Bill(self.problem.model.unit, tuple(self._charges()))

    @cached_property
    def _inside(self) -> set[Merge]:
        """Joins that are replaced by the plans of parts."""
        return {merge for found in self.joins for merge in found.replaced}

    def _charges(self) -> Iterator[Charge]:
        by_merge = {found.join.merge: found for found in self.joins}
        for merge in merges(self.tree):
            if merge not in self._inside:
                yield from self.whole.charges_at(merge, skip=set(by_merge))
                for below in merge.inputs:
                    if isinstance(below, Merge) and below in by_merge:
                        yield from self._leaving(by_merge[below], self.placement[merge], "ship")
        for number, found in enumerate(self.joins):
            for label, part in enumerate(found.parts):
                for charge in part.solution.bill.charges:
                    yield replace(charge, what=f"{charge.what} (join {number}, part {label})")
        sink = self.problem.sink
        if sink is not None:
            target = self.problem.topology.names[sink]
            if isinstance(self.tree, Merge) and self.tree in by_merge:
                yield from self._leaving(by_merge[self.tree], target, "deliver")
            else:
                yield self.whole.shipping(self.tree, target, "deliver")

    def _leaving(self, found: PartitionedJoin, target: str, verb: str) -> Iterator[Charge]:
        """What comes out of the parts, each from its own site."""
        position = self.problem.topology.position
        for label, part in enumerate(found.parts):
            inner = part.solution.problem
            volume = inner.volume(inner.everything)
            amount = self.problem.network.cost(volume, position(part.site), position(target))
            what = f"{verb} part {label} of {self.problem.label(self.problem.mask(found.join.merge.streams))}"
            yield Charge(what, found.join.merge.streams, part.site, target, volume, amount)
