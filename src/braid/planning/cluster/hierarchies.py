"""The hierarchy of a topology, built once for each cost model and cluster size."""

from __future__ import annotations

import numpy as np

from braid.errors import PlanningError
from braid.planning.cluster.hierarchy import Hierarchy, check_size
from braid.planning.problem import Problem
from braid.planning.transport import Dense, Floats

MOST_SITES = 4_096
"""The most sites that are clustered, because the distances between all of them are needed."""


def distances_of(problem: Problem) -> Floats:
    """The cost of shipping one unit between any two sites."""
    sites = problem.transport.sites
    if sites > MOST_SITES:
        raise PlanningError(
            f"clusters are made of at most {MOST_SITES:,} sites, and the network has {sites:,}; choose planner='exact'"
        )
    if isinstance(problem.transport, Dense):
        return problem.transport.distances

    def make() -> Floats:
        distances = np.empty((sites, sites))
        for target in range(sites):
            problem.deadline.check()
            distances[:, target] = problem.transport.costs_to(1.0, target)
        return distances

    return problem.topology.remember(("unit distances", problem.model), make)


def hierarchy_of(problem: Problem, max_cs: int) -> Hierarchy:
    """The hierarchy of clusters of at most `max_cs` sites for a problem; the topology keeps it."""
    check_size(max_cs)
    key = ("hierarchy", problem.model, max_cs)
    return problem.topology.remember(key, lambda: Hierarchy.build(distances_of(problem), max_cs, problem.deadline))
