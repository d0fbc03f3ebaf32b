"""A join tree that is fixed before its sites are chosen, and the cheapest sites for its joins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from braid.planning.order.exact import Choice
from braid.planning.order.subsets import levels, splits
from braid.planning.problem import Problem

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Shape:
    """A binary join tree over sets of streams, without sites."""

    mask: int
    inputs: tuple[Shape, Shape] | None = None

    def joins(self) -> tuple[Shape, ...]:
        """Every join of the tree, each after the joins it reads."""
        if self.inputs is None:
            return ()
        return (*self.inputs[0].joins(), *self.inputs[1].joins(), self)


def smallest_results(problem: Problem) -> Shape:
    """The tree whose joins have the smallest results in total: the choice of an optimizer that ignores the network."""
    volumes = problem.volumes
    total = np.zeros_like(volumes)
    for level in levels(len(problem.streams)):
        problem.deadline.check()
        total[level.masks] = volumes[level.masks] + (total[level.lefts] + total[level.rights]).min(axis=1)

    def build(mask: int) -> Shape:
        if mask.bit_count() == 1:
            return Shape(mask)
        lefts, rights = splits(mask)
        best = int((total[lefts] + total[rights]).argmin())
        return Shape(mask, (build(int(lefts[best])), build(int(rights[best]))))

    return build(problem.everything)


def place(problem: Problem, shape: Shape, allowed: Mapping[int, Floats] | None = None) -> Choice:
    """The cheapest sites for the joins of a tree. `allowed[S]` is infinite at sites where set S must not be joined.

    An offer replaces a join where that is cheaper.
    """
    placing = _Placing(problem, allowed or {})
    placing.cost_at_each_site(shape)
    return placing.choice(shape, problem.sink)


class _Placing:
    def __init__(self, problem: Problem, allowed: Mapping[int, Floats]) -> None:
        self._problem, self._allowed = problem, allowed
        # Of each set: the cost of making it at each site, and the cost of having it at each site without a join.
        self._make_costs: dict[int, Floats] = {}
        self._available: dict[int, Floats] = {}
        for stream, origin in enumerate(problem.origins):
            self._available.setdefault(1 << stream, np.full(problem.transport.sites, np.inf))[origin] = 0.0
        for offer in problem.offers:
            self._available.setdefault(offer.mask, np.full(problem.transport.sites, np.inf))[offer.site] = offer.cost

    def cost_at_each_site(self, shape: Shape) -> Floats:
        """The cost of having the result of a tree at each site, made there or shipped there."""
        self._problem.deadline.check()
        costs = np.full(self._problem.transport.sites, np.inf)
        if shape.inputs is not None:
            left, right = shape.inputs
            costs = self.cost_at_each_site(left) + self.cost_at_each_site(right)
            costs = costs + self._problem.work(left.mask, right.mask)
            costs = costs + self._allowed.get(shape.mask, 0.0)
        if shape.mask in self._available:
            costs = np.minimum(costs, self._available[shape.mask])
        self._make_costs[shape.mask] = costs
        return self._problem.transport.spread(costs, self._problem.volume(shape.mask))

    def choice(self, shape: Shape, target: int | None) -> Choice:
        """The cheapest sites of a tree whose result is wanted at the target, or anywhere."""
        costs = self._make_costs[shape.mask]
        self._problem.deadline.check()
        if target is not None:
            costs = costs + self._problem.transport.costs_to(self._problem.volume(shape.mask), target)
        site = int(costs.argmin())
        available = self._available.get(shape.mask)
        if shape.inputs is None or (available is not None and available[site] <= self._make_costs[shape.mask][site]):
            return Choice(shape.mask, site, None)
        left, right = shape.inputs
        return Choice(shape.mask, site, (self.choice(left, site), self.choice(right, site)))
