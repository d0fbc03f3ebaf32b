"""Planning a join within a cluster, and passing parts of it to the clusters below.

A coordinator knows only the distances between the nodes of its cluster; for it, all streams from or to the outside pass
through itself. It plans all joins it receives at once. The joins that it assigns to one node are a view, which that
node plans again within its own cluster one level below.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from braid.planning.cluster.hierarchy import Cluster, Hierarchy
from braid.planning.order.exact import Choice, SearchInputs, check_limits, optimise
from braid.planning.order.exhaustive import search_space
from braid.planning.order.subsets import levels
from braid.planning.problem import Offer, Problem
from braid.planning.transport import ChosenSites, Floats


@dataclass(eq=False)
class Views:
    """One query being planned over a hierarchy; `considered` counts the plans of exhaustive search in each cluster."""

    problem: Problem
    hierarchy: Hierarchy
    planner: str
    considered: int = 0

    def sources(self) -> list[Choice]:
        """The streams of the query, each at its origin."""
        return [Choice(1 << stream, origin, None) for stream, origin in enumerate(self.problem.origins)]

    def below(self, cluster: Cluster, level: int, site: int) -> bool:
        """Whether a site is in a cluster of a level, or in a cluster below it."""
        return self.hierarchy.representative(site, level) in cluster.members

    def node(self, cluster: Cluster, level: int, site: int) -> int:
        """The node of a cluster that represents a site; the coordinator represents all sites outside."""
        representative = self.hierarchy.representative(site, level)
        return representative if representative in cluster.members else cluster.coordinator

    def solve(self, inputs: Sequence[Choice], cluster: Cluster, level: int, target: int | None) -> Choice:
        """Join these inputs within a cluster, with the result wanted at the target, or anywhere."""
        if len(inputs) == 1:
            return inputs[0]
        self.problem.deadline.check()
        self.considered += search_space(len(inputs), len(cluster.members))
        local = self.best(inputs, cluster, level, target)
        if level == 1:
            return self._resolved(local, inputs, cluster)
        return self._pass_down(local, inputs, cluster, level, target)

    def best(self, inputs: Sequence[Choice], cluster: Cluster, level: int, target: int | None) -> Choice:
        """The cheapest plan on the nodes of the cluster.

        In this plan the bits of masks stand for inputs, and sites are positions in `cluster.members`.
        """
        check_limits(len(inputs), len(cluster.members), self.planner)
        masks = np.zeros(1 << len(inputs), np.int64)
        for bit, choice in enumerate(inputs):
            masks[1 << bit : 2 << bit] = masks[: 1 << bit] | choice.mask
        available = self._available(inputs, masks, cluster, level)
        works: dict[int, Floats] = {}
        for sets in levels(len(inputs)):
            self.problem.deadline.check()
            costs = self.problem.works(masks[sets.lefts], masks[sets.rights])
            works.update(zip(sets.masks.tolist(), costs, strict=True))
        table_inputs = SearchInputs(
            ChosenSites(self.problem.transport, cluster.members), self.problem.volumes[masks], available, works
        )
        position = None if target is None else cluster.members.index(self.node(cluster, level, target))
        return optimise(table_inputs, self.problem.deadline).choice(position)

    def _available(
        self, inputs: Sequence[Choice], masks: NDArray[np.int64], cluster: Cluster, level: int
    ) -> dict[int, Floats]:
        """The cost, at each node of a cluster, of sets of inputs that need no join: single inputs and offers."""
        available: dict[int, Floats] = {}

        def add(mask: int, site: int, cost: float = 0.0) -> None:
            costs = available.setdefault(mask, np.full(len(cluster.members), np.inf))
            position = cluster.members.index(self.node(cluster, level, site))
            costs[position] = min(costs[position], cost)

        for bit, choice in enumerate(inputs):
            add(1 << bit, choice.site)
        for offer in self.problem.offers:
            if self.below(cluster, level, offer.site):
                for mask in np.flatnonzero(masks == offer.mask).tolist():
                    add(mask, offer.site, self._offer_cost(offer, cluster, level))
        return available

    def _offer_cost(self, offer: Offer, cluster: Cluster, level: int) -> float:
        """The cost of using an offer, by the distances that the cluster knows."""
        position = self.problem.topology.position
        return sum(
            self.problem.transport.cost(
                charge.volume,
                self.node(cluster, level, position(charge.source)),
                self.node(cluster, level, position(charge.target)),
            )
            for charge in offer.charges
        )

    def _union(self, mask: int, inputs: Sequence[Choice]) -> int:
        """The streams of a set of inputs."""
        return sum(choice.mask for bit, choice in enumerate(inputs) if mask >> bit & 1)

    def _input(self, local: Choice, inputs: Sequence[Choice], cluster: Cluster, level: int) -> Choice:
        """The input or the offer behind a leaf of a local plan.

        An input that was joined at a lower level may also be offered as a derived stream, nearer to the target.
        """
        mask, node = self._union(local.mask, inputs), cluster.members[local.site]
        if local.mask.bit_count() == 1:
            choice = inputs[local.mask.bit_length() - 1]
            if self.node(cluster, level, choice.site) == node:
                return choice
        offer = min(
            (
                offer
                for offer in self.problem.offers
                if offer.mask == mask
                and self.below(cluster, level, offer.site)
                and self.node(cluster, level, offer.site) == node
            ),
            key=lambda offer: (self._offer_cost(offer, cluster, level), offer.site),
        )
        return Choice(mask, offer.site, None)

    def _resolved(self, local: Choice, inputs: Sequence[Choice], cluster: Cluster) -> Choice:
        """A local plan of level 1, where nodes are sites, as a plan of the problem."""
        if local.inputs is None:
            return self._input(local, inputs, cluster, 1)
        left, right = (self._resolved(below, inputs, cluster) for below in local.inputs)
        return Choice(left.mask | right.mask, cluster.members[local.site], (left, right))

    def _pass_down(
        self, local: Choice, inputs: Sequence[Choice], cluster: Cluster, level: int, target: int | None
    ) -> Choice:
        """Let each node plan the view that the local plan assigns to it."""
        if local.inputs is None:
            return self._input(local, inputs, cluster, level)
        node = cluster.members[local.site]
        planned = [self._pass_down(below, inputs, cluster, level, node) for below in _frontier(local)]
        view = self.hierarchy.led_by(node, level - 1)
        return self.solve(planned, view, level - 1, target)


def _frontier(root: Choice) -> list[Choice]:
    """The inputs of a view: of the root and of the joins at the same site that are connected to it."""
    frontier: list[Choice] = []
    for below in root.inputs or ():
        frontier += _frontier(below) if below.inputs is not None and below.site == root.site else [below]
    return frontier
