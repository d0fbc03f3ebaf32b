"""Relaxation: sites are points in space and streams are springs; each join moves to where its springs are at rest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from braid.errors import PlanningError
from braid.model.checks import check_positive
from braid.planning.cluster.hierarchies import distances_of
from braid.planning.deadline import NO_DEADLINE, Deadline
from braid.planning.order.exact import Choice, check_limits, tree_of
from braid.planning.place.shape import Floats, Shape, smallest_results
from braid.planning.problem import Problem
from braid.planning.solution.tree import TreeSolution

DIMENSIONS = 3
"""The dimensions of the cost space."""


def cost_space(distances: Floats, iterations: int = 4_000, seed: int = 1, deadline: Deadline = NO_DEADLINE) -> Floats:
    """A point for each site, such that distances between points resemble those between sites (Vivaldi coordinates).

    In each iteration every site moves towards or away from one other site, by a shrinking share of the difference.
    """
    generator = np.random.default_rng(seed)
    sites = len(distances)
    points: Floats = generator.normal(size=(sites, DIMENSIONS)) * distances.mean() / 2
    itself = np.arange(sites)
    for iteration in range(iterations if sites > 1 else 0):
        deadline.check()
        others = (itself + generator.integers(1, sites, sites)) % sites
        offsets = points - points[others]
        lengths = np.sqrt((offsets * offsets).sum(axis=1))
        directions = offsets / np.maximum(lengths, 1e-12)[:, None]
        step = 0.25 * (1 - iteration / iterations)
        points += step * (distances[itself, others] - lengths)[:, None] * directions
    return points


@dataclass(frozen=True)
class Relaxation:
    """The join order is chosen first; joins settle in a 3-D cost space and are placed at the nearest sites.

    `considered` counts the moves of all joins. An offer replaces a join where that is cheaper.
    """

    iterations: int = 4_000
    name: str = "relaxation"

    def __post_init__(self) -> None:
        check_positive(self.iterations, "the iterations of springs", PlanningError)

    def plan(self, problem: Problem) -> TreeSolution:
        check_limits(len(problem.streams), problem.transport.sites, self.name)
        space = self._space(problem)
        shape = smallest_results(problem)
        joins = shape.joins()
        points, steps = _relax(problem, joins, space, self.iterations)
        sites = {
            join.mask: int(np.linalg.norm(space - point, axis=1).argmin())
            for join, point in zip(joins, points, strict=True)
        }
        choice = _with_offers(problem, _placed(problem, shape, sites), problem.sink)[0]
        return TreeSolution(problem, *tree_of(choice, problem), steps * len(joins))

    def _space(self, problem: Problem) -> Floats:
        key = ("cost space", problem.model, self.iterations)

        def make() -> Floats:
            return cost_space(distances_of(problem), self.iterations, deadline=problem.deadline)

        return problem.topology.remember(key, make)


def _relax(problem: Problem, joins: tuple[Shape, ...], space: Floats, iterations: int) -> tuple[Floats, int]:
    """The points where the joins come to rest, and the number of steps.

    In each step every join moves to the mean of its neighbours, weighted by the volume of the stream between them.
    """
    position_of = {join.mask: position for position, join in enumerate(joins)}
    pulls = np.zeros((len(joins), len(joins)))
    # The pull of streams and of the sink, which do not move: their weighted points, and their weights.
    fixed, weight = np.zeros((len(joins), DIMENSIONS)), np.zeros(len(joins))
    for position, join in enumerate(joins):
        assert join.inputs is not None
        for below in join.inputs:
            volume = problem.volume(below.mask)
            if below.inputs is None:
                fixed[position] += volume * space[problem.origins[below.mask.bit_length() - 1]]
                weight[position] += volume
            else:
                other = position_of[below.mask]
                pulls[position, other] = pulls[other, position] = volume
    if joins and problem.sink is not None:
        fixed[-1] += problem.volume(problem.everything) * space[problem.sink]
        weight[-1] += problem.volume(problem.everything)
    total = np.maximum(weight + pulls.sum(axis=1), 1e-300)
    points = np.zeros((len(joins), DIMENSIONS)) + space[list(problem.origins)].mean(axis=0)
    for step in range(iterations):
        problem.deadline.check()
        moved = (fixed + pulls @ points) / total[:, None]
        if np.abs(moved - points).max(initial=0.0) <= 1e-9 * np.abs(space).max():
            return moved, step + 1
        points = moved
    return points, iterations


def _placed(problem: Problem, shape: Shape, sites: dict[int, int]) -> Choice:
    """The tree with its joins at the given sites."""
    if shape.inputs is None:
        return Choice(shape.mask, problem.origins[shape.mask.bit_length() - 1], None)
    left, right = (_placed(problem, below, sites) for below in shape.inputs)
    return Choice(shape.mask, sites[shape.mask], (left, right))


def _with_offers(problem: Problem, choice: Choice, target: int | None) -> tuple[Choice, float]:
    """The plan with joins replaced by cheaper offers, and its cost including delivery to the target."""
    volume = problem.volume(choice.mask)

    def shipping(site: int) -> float:
        return 0.0 if target is None else problem.transport.cost(volume, site, target)

    best = choice, shipping(choice.site)
    if choice.inputs is not None:
        (left, left_cost), (right, right_cost) = (_with_offers(problem, below, choice.site) for below in choice.inputs)
        work = problem.work(left.mask, right.mask)
        best = choice._replace(inputs=(left, right)), best[1] + left_cost + right_cost + work
    for offer in problem.offers:
        cost = offer.cost + shipping(offer.site)
        if offer.mask == choice.mask and cost < best[1]:
            best = Choice(choice.mask, offer.site, None), cost
    return best
