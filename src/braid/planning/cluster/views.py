"""Planning a join within a cluster, and passing its pieces down to the clusters below.

A coordinator knows the distances between the nodes of its own cluster and nothing else: whatever comes from outside
or goes there, passes its coordinator. It plans all joins it is given at once; those that fall to one node are a view,
which that node plans again within its own cluster one level below.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from braid.planning.cluster.hierarchy import Cluster, Hierarchy
from braid.planning.order.exact import Choice, Inputs, check_limits, optimise
from braid.planning.order.exhaustive import search_space
from braid.planning.order.subsets import levels
from braid.planning.problem import Offer, Problem
from braid.planning.transport import Floats, Part


@dataclass(eq=False)
class Views:
    """One query being planned over a hierarchy; `considered` counts plans as exhaustive search in each cluster does."""

    problem: Problem
    hierarchy: Hierarchy
    planner: str
    considered: int = 0

    def sources(self) -> list[Choice]:
        """The streams of the query, as they start."""
        return [Choice(1 << stream, origin, None) for stream, origin in enumerate(self.problem.origins)]

    def below(self, cluster: Cluster, level: int, site: int) -> bool:
        """Whether a site belongs to a cluster of a level, or to one below it."""
        return self.hierarchy.representative(site, level) in cluster.members

    def node(self, cluster: Cluster, level: int, site: int) -> int:
        """The node of a cluster that stands for a site; what is outside comes in by the coordinator."""
        found = self.hierarchy.representative(site, level)
        return found if found in cluster.members else cluster.coordinator

    def solve(self, parts: Sequence[Choice], cluster: Cluster, level: int, target: int | None) -> Choice:
        """Join these parts within a cluster, for a result that is wanted at the target (or anywhere)."""
        if len(parts) == 1:
            return parts[0]
        self.problem.deadline.check()
        self.considered += search_space(len(parts), len(cluster.members))
        local = self.best(parts, cluster, level, target)
        if level == 1:
            return self._resolved(local, parts, cluster)
        return self._pass_down(local, parts, cluster, level, target)

    def best(self, parts: Sequence[Choice], cluster: Cluster, level: int, target: int | None) -> Choice:
        """The cheapest plan on the nodes of the cluster; masks are of parts, sites are places in the cluster."""
        check_limits(len(parts), len(cluster.members), self.planner)
        masks = np.zeros(1 << len(parts), np.int64)
        for number, part in enumerate(parts):
            masks[1 << number : 2 << number] = masks[: 1 << number] | part.mask
        volumes = self.problem.volumes[masks]
        given: dict[int, Floats] = {}

        def there(mask: int, site: int, cost: float = 0.0) -> None:
            costs = given.setdefault(mask, np.full(len(cluster.members), np.inf))
            place = cluster.members.index(self.node(cluster, level, site))
            costs[place] = min(costs[place], cost)

        for number, part in enumerate(parts):
            there(1 << number, part.site)
        for offer in self.problem.offers:
            if self.below(cluster, level, offer.site):
                for mask in np.flatnonzero(masks == offer.mask).tolist():
                    there(mask, offer.site, self._fee(offer, cluster, level))
        works: dict[int, Floats] = {}
        for found in levels(len(parts)):
            self.problem.deadline.check()
            joined = self.problem.works(masks[found.lefts], masks[found.rights])
            works.update(zip(found.masks.tolist(), joined, strict=True))
        inputs = Inputs(Part(self.problem.network, cluster.members), volumes, given, works)
        wanted = None if target is None else cluster.members.index(self.node(cluster, level, target))
        return optimise(inputs, self.problem.deadline).choice(wanted)

    def _fee(self, offer: Offer, cluster: Cluster, level: int) -> float:
        """What the use of an offer costs, as far as the cluster sees it."""
        position = self.problem.topology.position
        return sum(
            self.problem.network.cost(
                charge.volume,
                self.node(cluster, level, position(charge.source)),
                self.node(cluster, level, position(charge.target)),
            )
            for charge in offer.charges
        )

    def _union(self, mask: int, parts: Sequence[Choice]) -> int:
        return sum(part.mask for number, part in enumerate(parts) if mask >> number & 1)

    def _input(self, local: Choice, parts: Sequence[Choice], cluster: Cluster, level: int) -> Choice:
        """What a leaf of a local plan stands for: one of the parts, or a derived stream of the cluster.

        A part that was joined lower down may be there as a derived stream too, and nearer to where it is wanted.
        """
        mask, node = self._union(local.mask, parts), cluster.members[local.site]
        if local.mask.bit_count() == 1:
            part = parts[local.mask.bit_length() - 1]
            if self.node(cluster, level, part.site) == node:
                return part
        offer = min(
            (
                offer
                for offer in self.problem.offers
                if offer.mask == mask
                and self.below(cluster, level, offer.site)
                and self.node(cluster, level, offer.site) == node
            ),
            key=lambda offer: (self._fee(offer, cluster, level), offer.site),
        )
        return Choice(mask, offer.site, None)

    def _resolved(self, local: Choice, parts: Sequence[Choice], cluster: Cluster) -> Choice:
        if local.parts is None:
            return self._input(local, parts, cluster, 1)
        left, right = (self._resolved(part, parts, cluster) for part in local.parts)
        return Choice(left.mask | right.mask, cluster.members[local.site], (left, right))

    def _pass_down(
        self, local: Choice, parts: Sequence[Choice], cluster: Cluster, level: int, target: int | None
    ) -> Choice:
        """Give each view to the node it fell to."""
        if local.parts is None:
            return self._input(local, parts, cluster, level)
        node = cluster.members[local.site]
        inputs = [self._pass_down(part, parts, cluster, level, node) for part in _frontier(local)]
        view = self.hierarchy.led_by(node, level - 1)
        return self.solve(inputs, view, level - 1, target)


def _frontier(root: Choice) -> list[Choice]:
    """What flows into the joins that are at the same site as the root and hang together with it."""
    inputs: list[Choice] = []
    for part in root.parts or ():
        inputs += _frontier(part) if part.parts is not None and part.site == root.site else [part]
    return inputs
