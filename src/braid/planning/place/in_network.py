"""In-network: choose the join order first, then assign each join to a zone of the network near its inputs."""

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
    """Each join is assigned to the zone where most of its input comes from, and placed at the best site of the zone.

    `considered` counts the placements of the joins of each zone on the sites of the zone.
    """

    zones: int = 5
    name: str = "in_network"

    def __post_init__(self) -> None:
        check_positive(self.zones, "the zones of a network", PlanningError)

    def plan(self, problem: Problem) -> TreeSolution:
        check_limits(len(problem.streams), problem.transport.sites, self.name)
        zone_of_site = self._zones(problem)
        shape = smallest_results(problem)
        zone_of_join: dict[int, int] = {}
        _assign(problem, shape, zone_of_site, zone_of_join)
        choice = place(problem, shape, {mask: _only(zone_of_site, zone) for mask, zone in zone_of_join.items()})
        sizes = Counter(zone_of_site.tolist())
        considered = sum(sizes[zone] ** joins for zone, joins in Counter(zone_of_join.values()).items())
        return TreeSolution(problem, *tree_of(choice, problem), considered)

    def _zones(self, problem: Problem) -> Labels:
        key = ("zones", problem.model, self.zones)
        return problem.topology.remember(key, lambda: cluster(distances_of(problem), self.zones, problem.deadline))


def _assign(problem: Problem, shape: Shape, zone_of_site: Labels, zone_of_join: dict[int, int]) -> int:
    """Assign each join, from the leaves up, to the zone that contributes most of its input; return the topmost zone."""
    if shape.inputs is None:
        return int(zone_of_site[problem.origins[shape.mask.bit_length() - 1]])
    weights: defaultdict[int, float] = defaultdict(float)
    for below in shape.inputs:
        weights[_assign(problem, below, zone_of_site, zone_of_join)] += problem.volume(below.mask)
    if shape.mask == problem.everything and problem.sink is not None:
        weights[int(zone_of_site[problem.sink])] += problem.volume(shape.mask)
    zone_of_join[shape.mask] = max(sorted(weights), key=lambda zone: weights[zone])
    return zone_of_join[shape.mask]


def _only(zone_of_site: Labels, zone: int) -> Floats:
    """A cost of 0 at the sites of a zone, and of infinity at all others."""
    return np.where(zone_of_site == zone, 0.0, np.inf)
