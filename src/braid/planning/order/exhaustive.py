"""Every join order with every placement, one by one: tests compare 'exact' with it, and the papers count its plans."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
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
"""The most plans that are compared."""
MOST_SITES = 4_096
"""The most sites, because the costs between all of them are kept as a table."""


def search_space(streams: int, sites: int) -> int:
    """The number of join orders times the number of placements of each (lemma 1 of the IFLOW paper).

    >>> f"{search_space(5, 64):.3g}", f"{search_space(5, 128):.3g}"
    ('3.02e+09', '4.83e+10')
    """
    orders = factorial(streams) * factorial(streams - 1) >> (streams - 1)
    return int(orders * sites ** (streams - 1))


@dataclass(frozen=True)
class Exhaustive:
    """Compares every order of pairwise joins with every placement; for very small problems."""

    name: str = "exhaustive"

    def plan(self, problem: Problem) -> TreeSolution:
        sites = problem.transport.sites
        plans = search_space(len(problem.streams), sites)
        if plans > MOST_PLANS or sites > MOST_SITES:
            check_limits(len(problem.streams), sites, self.name)
            raise PlanningError(
                f"{plans:.3g} plans are too many for 'exhaustive', "
                f"which takes at most {MOST_PLANS:,} on at most {MOST_SITES:,} sites, not {sites:,}; "
                "choose planner='exact', which finds the same optimum"
            )
        best, least, considered, shipping = None, np.inf, 0, _shipping(problem)
        for start, offer_costs in _starts(problem):
            for joins in _orders(tuple(mask for mask, _ in start)):
                costs = _placements(problem, shipping, dict(start), joins) + offer_costs
                considered += costs.size
                if costs.min() < least:
                    least = float(costs.min())
                    best = start, joins, np.unravel_index(costs.argmin(), costs.shape)
        assert best is not None
        tree, placement = tree_of(_choice(*best), problem)
        return TreeSolution(problem, tree, placement, considered)


Start = tuple[tuple[int, int], ...]
"""The streams and offers that a plan starts from: their masks and sites. Together they have every stream once."""
Joins = tuple[tuple[int, int], ...]
"""Pairwise joins in order, each by the masks of its two inputs."""


def _starts(problem: Problem) -> Iterator[tuple[Start, float]]:
    """Every choice of disjoint offers, completed by the streams that are in none of them.

    Each comes with the cost of using its offers.
    """
    for chosen in _choices(problem, problem.offers, 0):
        covered = sum(offer.mask for offer in chosen)
        rest = ((1 << stream, site) for stream, site in enumerate(problem.origins) if not covered >> stream & 1)
        start = (*((offer.mask, offer.site) for offer in chosen), *rest)
        yield start, sum(offer.cost for offer in chosen)


def _choices(problem: Problem, offers: tuple[Offer, ...], covered: int) -> Iterator[tuple[Offer, ...]]:
    """Every choice of offers that share no stream with each other or with `covered`; each choice once."""
    problem.deadline.check()
    yield ()
    for position, offer in enumerate(offers):
        if not covered & offer.mask:
            for others in _choices(problem, offers[position + 1 :], covered | offer.mask):
                yield (offer, *others)


def _orders(masks: tuple[int, ...]) -> Iterator[Joins]:
    """Every sequence of pairwise joins that joins all parts."""
    if len(masks) == 1:
        yield ()
    for left, right in combinations(masks, 2):
        rest = tuple(mask for mask in masks if mask not in (left, right))
        for following in _orders((*rest, left | right)):
            yield ((left, right), *following)


def _placements(problem: Problem, shipping: Callable[[int], Floats], start: dict[int, int], joins: Joins) -> Floats:
    """The cost of each placement of these joins: an array with one axis for each join, and one entry for each site."""
    sites, axes = problem.transport.sites, len(joins)
    total = np.zeros((1,) * axes)
    axis_of: dict[int, int] = {}  # The axis of the join that makes each set.
    for axis, (left, right) in enumerate(joins):
        problem.deadline.check()
        total = total + problem.work(left, right)
        for mask in (left, right):
            costs = shipping(mask)
            if mask in axis_of:
                shape = [1] * axes
                shape[axis_of[mask]] = shape[axis] = sites
                # A join is made before it is used, so its axis comes before the axis of the join that uses it.
                total = total + costs.reshape(shape)
            else:
                total = total + _along(costs[start[mask]], axis, axes)
        axis_of[left | right] = axis
    if problem.sink is not None:
        costs = problem.transport.costs_to(problem.volume(problem.everything), problem.sink)
        last_axis = axis_of.get(problem.everything)
        if last_axis is None:
            return np.array(costs[start[problem.everything]]).reshape((1,) * axes)
        total = total + _along(costs, last_axis, axes)
    return np.broadcast_to(total, (sites,) * axes) if axes else total


def _shipping(problem: Problem) -> Callable[[int], Floats]:
    """The cost of shipping a set of streams, given by its mask, from each site to each site."""

    @cache
    def matrix(mask: int) -> Floats:
        costs = np.empty((problem.transport.sites,) * 2)
        for target in range(problem.transport.sites):
            problem.deadline.check()
            costs[:, target] = problem.transport.costs_to(problem.volume(mask), target)
        return costs

    return matrix


def _along(values: Floats, axis: int, axes: int) -> Floats:
    """The values along one axis of an array with this many axes."""
    shape = [1] * axes
    shape[axis] = len(values)
    return values.reshape(shape)


def _choice(start: Start, joins: Joins, sites: tuple[np.intp, ...]) -> Choice:
    choices = {mask: Choice(mask, site, None) for mask, site in start}
    last = next(iter(choices.values()))
    for (left, right), site in zip(joins, sites, strict=True):
        last = choices[left | right] = Choice(left | right, int(site), (choices[left], choices[right]))
    return last
