"""The solution most planners return: a join tree, and a site for each of its joins."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from braid.errors import PlanError
from braid.model.plan import Plan
from braid.model.tree import JoinTree, Leaf, Merge, Reused, leaves, merges, sequences
from braid.planning.cost.bill import Bill, Charge
from braid.planning.problem import Offer, Problem
from braid.planning.reuse.matching import Match


@dataclass(frozen=True)
class TreeSolution:
    """A join tree with the site of each join; `considered` is the number of alternatives that were compared."""

    problem: Problem
    tree: JoinTree
    placement: Mapping[Merge, str]
    considered: int

    def __post_init__(self) -> None:
        if self.tree.streams != frozenset(self.problem.streams):
            raise PlanError(f"tree {self.tree} does not join the streams {', '.join(self.problem.streams)}")
        if set(self.placement) != set(merges(self.tree)):
            raise PlanError(f"each join of {self.tree} needs one site")
        for site in self.placement.values():
            self.problem.topology.position(site)

    @property
    def plan(self) -> Plan:
        return Plan(self.problem.query, sequences(self.tree, self.problem.query))

    def site(self, subtree: JoinTree) -> str:
        """The site where the result of a subtree is available: origin of a stream, or site of a join."""
        if isinstance(subtree, Leaf):
            return self.problem.topology.names[self.problem.origins[self.problem.streams.index(subtree.stream)]]
        return subtree.site if isinstance(subtree, Reused) else self.placement[subtree]

    @property
    def layout(self) -> str:
        return "\n".join(self._layout(self.tree, 0))

    def _layout(self, subtree: JoinTree, depth: int) -> Iterator[str]:
        label = self.problem.label(self.problem.mask(subtree.streams))
        reused = " (reused)" if isinstance(subtree, Reused) else ""
        yield f"{'  ' * depth}{label} at {self.site(subtree)}{reused}"
        if isinstance(subtree, Merge):
            for below in subtree.inputs:
                yield from self._layout(below, depth + 1)

    def offer(self, leaf: Reused) -> Offer:
        """The offer behind a reused stream."""
        wanted = self.problem.mask(leaf.streams), self.problem.topology.position(leaf.site)
        return next(offer for offer in self.problem.offers if (offer.mask, offer.site) == wanted)

    def reused(self, subtree: JoinTree) -> Iterator[Match]:
        """The derived streams of other deployments that a subtree reuses."""
        for leaf in leaves(subtree):
            if isinstance(leaf, Reused):
                yield self.offer(leaf).match

    @property
    def bill(self) -> Bill:
        return self.problem.bill(self._charges())

    def _charges(self) -> Iterator[Charge]:
        for leaf in leaves(self.tree):
            if isinstance(leaf, Reused):
                yield from self.offer(leaf).charges
        for merge in merges(self.tree):
            yield from self.charges_at(merge)
        if self.problem.sink is not None:
            yield self.shipping(self.tree, self.problem.topology.names[self.problem.sink], "deliver")

    def charges_at(self, merge: Merge, skip: Collection[JoinTree] = ()) -> Iterator[Charge]:
        """The charges of one join: shipping its inputs to its site, except those in `skip`, and joining them."""
        problem, site = self.problem, self.placement[merge]
        joined = 0
        for subtree in merge.inputs:
            mask = problem.mask(subtree.streams)
            if subtree not in skip:
                yield self.shipping(subtree, site)
            if joined:
                what = f"join {problem.label(joined)} with {problem.label(mask)}"
                yield Charge(what, problem.names(joined | mask), site, site, 0.0, problem.work(joined, mask))
            joined |= mask

    def shipping(self, subtree: JoinTree, target: str, verb: str = "ship") -> Charge:
        """The charge for shipping the result of a subtree to a site."""
        problem, source = self.problem, self.site(subtree)
        mask = problem.mask(subtree.streams)
        volume = problem.volume(mask)
        position = problem.topology.position
        amount = problem.transport.cost(volume, position(source), position(target))
        label = problem.label(mask)
        return Charge(f"{verb} {label}", subtree.streams, source, target, volume, amount, label)
