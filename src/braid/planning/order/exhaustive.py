"""Every join order with every placement, one by one: what 'exact' must equal, and what the papers compare with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import factorial

import numpy as np
from numpy.typing import NDArray

from braid.errors import PlanningError
from braid.planning.order.exact import Choice, check_limits, tree_of
from braid.planning.problem import Offer, Problem
from braid.planning.solution.tree import TreeSolution

Floats = NDArray[np.float64]

MOST_PLANS = 50_000_000
MOST_SITES = 4_096
"""Costs between all sites are looked at as a table."""


def search_space(streams: int, sites: int) -> int:
    """How many orders of joins there are, with every placement of each (lemma 1 of the IFLOW paper).

    >>> f"{search_space(5, 64):.3g}", f"{search_space(5, 128):.3g}"
    ('3.02e+09', '4.83e+10')
    """
    orders = factorial(streams) * factorial(streams - 1) >> (streams - 1)
    return int(orders * sites ** (streams - 1))


@dataclass(frozen=True)
class Exhaustive:
    """Looks at each order of pairwise joins with each placement; for very small cases."""

    name: str = "exhaustive"

    def plan(self, problem: Problem) -> TreeSolution:
        sites = problem.network.sites
        plans = search_space(len(problem.streams), sites)
        if plans > MOST_PLANS or sites > MOST_SITES:
            check_limits(len(problem.streams), sites, self.name)
            raise PlanningError(
                f"{plans:.3g} plans are too many for 'exhaustive', "
                f"which takes at most {MOST_PLANS:,} on at most {MOST_SITES:,} sites, not {sites:,}; "
                "choose planner='exact', which finds the same optimum"
            )
        best, least, considered = None, np.inf, 0
        for start, fees in _starts(problem):
            for joins in _orders(tuple(mask for mask, _ in start)):
                costs = _placements(problem, dict(start), joins) + fees
                considered += costs.size
                if costs.min() < least:
                    least, best = float(costs.min()), (start, joins, np.unravel_index(costs.argmin(), costs.shape))
        assert best is not None
        tree, placement = tree_of(_choice(*best), problem)
        return TreeSolution(problem, tree, placement, considered)


Start = tuple[tuple[int, int], ...]
"""Sets that are there to begin with, each with the number of its site; together they are all streams."""
Joins = tuple[tuple[int, int], ...]


def _starts(problem: Problem) -> Iterator[tuple[Start, float]]:
    """The streams themselves, and every choice of offers that have no stream in common instead of some of them.

    Each comes with what the use of its offers costs.
    """
    for chosen in _choices(problem, problem.offers, 0):
        covered = sum(offer.mask for offer in chosen)
        rest = ((1 << n, at) for n, at in enumerate(problem.origins) if not covered >> n & 1)
        start = (*((offer.mask, offer.site) for offer in chosen), *rest)
        yield start, sum(offer.cost for offer in chosen)


def _choices(problem: Problem, offers: tuple[Offer, ...], covered: int) -> Iterator[tuple[Offer, ...]]:
    """Every choice of offers that have no stream in common, with each other or with those covered; each choice once."""
    problem.deadline.check()
    yield ()
    for place, offer in enumerate(offers):
        if not covered & offer.mask:
            for others in _choices(problem, offers[place + 1 :], covered | offer.mask):
                yield (offer, *others)


def _orders(parts: tuple[int, ...]) -> Iterator[Joins]:
    """Every sequence of pairwise joins that puts the parts together."""
    if len(parts) == 1:
        yield ()
    for left, right in combinations(parts, 2):
        rest = tuple(part for part in parts if part not in (left, right))
        for following in _orders((*rest, left | right)):
            yield ((left, right), *following)


def _placements(problem: Problem, start: dict[int, int], joins: Joins) -> Floats:
    """The cost of each placement of these joins: one axis for each join, one entry for each site."""
    sites, axes = problem.network.sites, len(joins)
    total = np.zeros((1,) * axes)
    made: dict[int, int] = {}
    for axis, (left, right) in enumerate(joins):
        problem.deadline.check()
        total = total + problem.work(left, right)
        for part in (left, right):
            total = total + _shipping(problem, part, start, made, axis, axes)
        made[left | right] = axis
    if problem.sink is not None:
        costs = problem.network.costs_to(problem.volume(problem.everything), problem.sink)
        whole = made.get(problem.everything)
        if whole is None:
            return np.array(costs[start[problem.everything]]).reshape((1,) * axes)
        total = total + _along(costs, whole, axes)
    return np.broadcast_to(total, (sites,) * axes) if axes else total


def _shipping(problem: Problem, part: int, start: dict[int, int], made: dict[int, int], axis: int, axes: int) -> Floats:
    """What it costs to ship a part to each site of a join, from each site where the part may be."""
    matrix = np.empty((problem.network.sites,) * 2)
    for target in range(problem.network.sites):
        problem.deadline.check()
        matrix[:, target] = problem.network.costs_to(problem.volume(part), target)
    if part in made:
        shape = [1] * axes
        shape[made[part]] = shape[axis] = len(matrix)
        # Joins are made before they are used, so the axis of the part comes first.
        return matrix.reshape(shape)
    return _along(matrix[start[part]], axis, axes)


def _along(values: Floats, axis: int, axes: int) -> Floats:
    shape = [1] * axes
    shape[axis] = len(values)
    return values.reshape(shape)


def _choice(start: Start, joins: Joins, places: tuple[np.intp, ...]) -> Choice:
    parts = {mask: Choice(mask, site, None) for mask, site in start}
    last = next(iter(parts.values()))
    for (left, right), site in zip(joins, places, strict=True):
        last = parts[left | right] = Choice(left | right, int(site), (parts[left], parts[right]))
    return last
