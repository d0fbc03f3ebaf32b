"""STREAMJOINOPT of the PMJoin paper: join streams of one site if that shrinks them, then ship the slowest stream.

Streams that are joined at a site form one n-ary join. The stream with the least volume is shipped to the partner with
the least cost. If shipping both to a third site costs less than shipping their join, they wait for that site.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from braid.model.tree import JoinTree, Leaf, Merge
from braid.planning.problem import Problem
from braid.planning.solution.tree import TreeSolution


@dataclass(frozen=True, eq=False)
class Item:
    """A stream, or a join of some streams, and its site."""

    mask: int
    site: int
    tree: JoinTree


@dataclass(eq=False)
class Assembly:
    """A plan under construction: the items left to join, and the sites of the joins so far."""

    problem: Problem
    items: list[Item]
    placement: dict[Merge, str] = field(default_factory=dict)
    considered: int = 0

    @classmethod
    def start(cls, problem: Problem) -> Assembly:
        streams = enumerate(zip(problem.streams, problem.origins, strict=True))
        return cls(problem, [Item(1 << stream, origin, Leaf(name)) for stream, (name, origin) in streams])

    def volume(self, mask: int) -> float:
        self.problem.deadline.check()
        self.considered += 1
        return self.problem.volume(mask)

    def join(self, items: Iterable[Item], site: int) -> Item:
        """Join some items at a site, and replace them by their result."""
        inputs = list(items)
        merge = Merge(tuple(item.tree for item in inputs))
        self.placement[merge] = self.problem.topology.names[site]
        result = Item(sum(item.mask for item in inputs), site, merge)
        self.items = [item for item in self.items if item not in inputs] + [result]
        return result

    def solution(self) -> TreeSolution:
        (whole,) = self.items
        return TreeSolution(self.problem, whole.tree, self.placement, max(self.considered, 1))


@dataclass(frozen=True)
class StreamJoinOpt:
    """The heuristic of the PMJoin paper: quadratic in the number of streams, and close to the optimum.

    `considered` counts the volumes that were compared.
    """

    name: str = "stream_join_opt"

    def plan(self, problem: Problem) -> TreeSolution:
        assembly = Assembly.start(problem)
        self.join_at_home(assembly)
        while len(assembly.items) > 1:
            slowest = min(assembly.items, key=lambda item: (assembly.volume(item.mask), item.mask))
            _ship(assembly, slowest)
        return assembly.solution()

    def join_at_home(self, assembly: Assembly) -> None:
        """At each site, join two streams if their join is slower than both."""
        for site in sorted({item.site for item in assembly.items}):
            waiting = sorted(
                (item for item in assembly.items if item.site == site),
                key=lambda item: (assembly.volume(item.mask), item.mask),
            )
            while waiting:
                first = waiting.pop(0)
                for other in list(waiting):
                    slower = assembly.volume(first.mask | other.mask) < assembly.volume(first.mask)
                    if slower and assembly.problem.tied(first.mask, other.mask):
                        waiting.remove(other)
                        first = assembly.join([first, other], site)


def _ship(assembly: Assembly, slowest: Item) -> None:
    """Find a site for the slowest item, and join it there; items that wait for a third site are shipped with it."""
    pending = [slowest]
    while True:
        mask = sum(item.mask for item in pending)
        rest = [item for item in assembly.items if item not in pending]
        candidates = [item for item in rest if assembly.problem.tied(mask, item.mask)] or rest
        best = min(candidates, key=lambda item: (_cost(assembly, pending, item, rest)[0], item.mask))
        if _cost(assembly, pending, best, rest)[1]:
            assembly.join([*pending, best], best.site)
            return
        pending.append(best)


def _cost(assembly: Assembly, pending: list[Item], item: Item, rest: list[Item]) -> tuple[float, bool]:
    """The cost of adding one more item, and whether joining at its site is the cheaper way (equation 4)."""
    mask = sum(waiting.mask for waiting in pending)
    arriving = sum(assembly.volume(waiting.mask) for waiting in pending if waiting.site != item.site)
    if len(rest) == 1:
        # This is the last join: there is no third site to wait for, and the result is not shipped.
        return arriving, True
    there = arriving + assembly.volume(mask | item.mask)
    third = sum(assembly.volume(waiting.mask) for waiting in pending) + assembly.volume(item.mask)
    return min(there, third), there <= third


@dataclass(frozen=True)
class Local(StreamJoinOpt):
    """The heuristic, but at each site it joins all streams that conditions tie together, even if that grows them."""

    name: str = "local"

    def join_at_home(self, assembly: Assembly) -> None:
        for site in sorted({item.site for item in assembly.items}):
            waiting = [item for item in assembly.items if item.site == site]
            while waiting:
                first = waiting.pop(0)
                while tied := [item for item in waiting if assembly.problem.tied(first.mask, item.mask)]:
                    waiting.remove(tied[0])
                    first = assembly.join([first, tied[0]], site)


@dataclass(frozen=True)
class Simple:
    """All streams are shipped to the site where the stream with the largest volume starts."""

    name: str = "simple"

    def plan(self, problem: Problem) -> TreeSolution:
        assembly = Assembly.start(problem)
        if len(assembly.items) > 1:
            largest = max(assembly.items, key=lambda item: (assembly.volume(item.mask), -item.mask))
            assembly.join(assembly.items, largest.site)
        return assembly.solution()
