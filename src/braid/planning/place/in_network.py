"""In-network: the order is chosen first; zones of the network then take the joins whose inputs they are nearest to."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np

from braid.errors import PlanningError
from braid.model.checks import check_positive
from braid.planning.cluster.hierarchies import distances_of
from braid.planning.cluster.kmeans import Labels, cluster
from braid.planning.order.exact import check_limits, tree_of
from braid.planning.place.shape import Floats, Shape, place, smallest_results
from braid.planning.problem import Problem
from braid.planning.solution.tree import TreeSolution


@dataclass(frozen=True)
class InNetwork:
    """Each join falls to the zone that most of its input comes from, and gets the best place within it.

    `considered` counts the placements of the joins of each zone on the sites of the zone.
    """

    zones: int = 5
    name: str = "in_network"

    def __post_init__(self) -> None:
        check_positive(self.zones, "the zones of a network", PlanningError)

    def plan(self, problem: Problem) -> TreeSolution:
        check_limits(len(problem.streams), problem.network.sites, self.name)
        zone_of = self._zones(problem)
        shape = smallest_results(problem)
        zones: dict[int, int] = {}
        _assign(problem, shape, zone_of, zones)
        choice = place(problem, shape, {mask: _outside(zone_of, zone) for mask, zone in zones.items()})
        sizes = Counter(zone_of.tolist())
        considered = sum(sizes[zone] ** joins for zone, joins in Counter(zones.values()).items())
        return TreeSolution(problem, *tree_of(choice, problem), considered)

    def _zones(self, problem: Problem) -> Labels:
        key = ("zones", problem.model, self.zones)
        return problem.topology.remember(key, lambda: cluster(distances_of(problem), self.zones, problem.deadline))


def _assign(problem: Problem, shape: Shape, zone_of: Labels, zones: dict[int, int]) -> int:
    """The zone of each join, from the leaves up: the one that brings most of what it reads."""
    if shape.parts is None:
        return int(zone_of[problem.origins[shape.mask.bit_length() - 1]])
    weights: defaultdict[int, float] = defaultdict(float)
    for part in shape.parts:
        weights[_assign(problem, part, zone_of, zones)] += problem.volume(part.mask)
    if shape.mask == problem.everything and problem.sink is not None:
        weights[int(zone_of[problem.sink])] += problem.volume(shape.mask)
    zones[shape.mask] = max(sorted(weights), key=lambda zone: weights[zone])
    return zones[shape.mask]


def _outside(zone_of: Labels, zone: int) -> Floats:
    return np.where(zone_of == zone, 0.0, np.inf)
