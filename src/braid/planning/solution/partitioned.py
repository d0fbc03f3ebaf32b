"""A join tree in which some joins have a separate plan for each part of the key space."""

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
    """The `whole` tree, and the `joins` of it that have a separate plan for each part of the key space."""

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
        for join in self.joins:
            count = "one part" if len(join.parts) == 1 else f"{len(join.parts)} parts"
            lines.append(f"{join.join.merge} in {count} of {join.join.attribute}")
            for label, part in enumerate(join.parts):
                lines.append(f"  part {label} ({part.count:,} values): {part.solution.tree} at {part.site}")
        return "\n".join(lines)

    @property
    def bill(self) -> Bill:
        return self.problem.bill(self._charges())

    @cached_property
    def _inside(self) -> set[Merge]:
        """The joins of the whole tree that the plans of parts replace."""
        return {merge for join in self.joins for merge in join.replaced}

    def _charges(self) -> Iterator[Charge]:
        by_merge = {join.join.merge: join for join in self.joins}
        for merge in merges(self.tree):
            if merge not in self._inside:
                yield from self.whole.charges_at(merge, skip=set(by_merge))
                for below in merge.inputs:
                    if isinstance(below, Merge) and below in by_merge:
                        yield from self._leaving(by_merge[below], self.placement[merge], "ship")
        for join_number, join in enumerate(self.joins):
            for label, part in enumerate(join.parts):
                for charge in part.solution.bill.charges:
                    named = f" (join {join_number}, part {label})"
                    yield replace(charge, what=charge.what + named, shipped=charge.shipped + named)
        sink = self.problem.sink
        if sink is not None:
            target = self.problem.topology.names[sink]
            if isinstance(self.tree, Merge) and self.tree in by_merge:
                yield from self._leaving(by_merge[self.tree], target, "deliver")
            else:
                yield self.whole.shipping(self.tree, target, "deliver")

    def _leaving(self, join: PartitionedJoin, target: str, verb: str) -> Iterator[Charge]:
        """The charges for shipping the results of all parts, each from the site of its part."""
        streams = join.join.merge.streams
        position = self.problem.topology.position
        for label, part in enumerate(join.parts):
            inner = part.solution.problem
            volume = inner.volume(inner.everything)
            amount = self.problem.transport.cost(volume, position(part.site), position(target))
            shipped = f"part {label} of {self.problem.label(self.problem.mask(streams))}"
            yield Charge(f"{verb} {shipped}", streams, part.site, target, volume, amount, shipped)
