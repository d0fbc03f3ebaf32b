"""A join tree that is fixed before anybody looks at the network, and the best places for it."""

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
    """A binary join tree over sets of streams, without places."""

    mask: int
    parts: tuple[Shape, Shape] | None = None

    def joins(self) -> tuple[Shape, ...]:
        """Every join, inputs before what they are inputs of."""
        if self.parts is None:
            return ()
        return (*self.parts[0].joins(), *self.parts[1].joins(), self)


def smallest_results(problem: Problem) -> Shape:
    """The tree whose joins yield the least in total: what an optimizer chooses that knows of no network."""
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
    """The cheapest places for the joins of a tree; `allowed[S]` is infinite where the join of S may not be.

    A join that is offered somewhere is used from there if that is cheaper than making it.
    """
    placing = _Placing(problem, allowed or {})
    placing.had(shape)
    return placing.choice(shape, problem.sink)


class _Placing:
    def __init__(self, problem: Problem, allowed: Mapping[int, Floats]) -> None:
        self._problem, self._allowed = problem, allowed
        self._made: dict[int, Floats] = {}
        self._given: dict[int, Floats] = {}
        for stream, origin in enumerate(problem.origins):
            self._given.setdefault(1 << stream, np.full(problem.network.sites, np.inf))[origin] = 0.0
        for offer in problem.offers:
            self._given.setdefault(offer.mask, np.full(problem.network.sites, np.inf))[offer.site] = offer.cost

    def had(self, shape: Shape) -> Floats:
        """The cost of having the result of a tree at each site."""
        self._problem.deadline.check()
        made = np.full(self._problem.network.sites, np.inf)
        if shape.parts is not None:
            left, right = shape.parts
            made = self.had(left) + self.had(right) + self._problem.work(left.mask, right.mask)
            made = made + self._allowed.get(shape.mask, 0.0)
        if shape.mask in self._given:
            made = np.minimum(made, self._given[shape.mask])
        self._made[shape.mask] = made
        return self._problem.network.spread(made, self._problem.volume(shape.mask))

    def choice(self, shape: Shape, target: int | None) -> Choice:
        costs = self._made[shape.mask]
        self._problem.deadline.check()
        if target is not None:
            costs = costs + self._problem.network.costs_to(self._problem.volume(shape.mask), target)
        site = int(costs.argmin())
        given = self._given.get(shape.mask)
        if shape.parts is None or (given is not None and given[site] <= self._made[shape.mask][site]):
            return Choice(shape.mask, site, None)
        left, right = shape.parts
        return Choice(shape.mask, site, (self.choice(left, site), self.choice(right, site)))
