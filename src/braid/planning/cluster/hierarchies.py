"""The hierarchy of a network, made once for each cost model and cluster size."""

from __future__ import annotations

import numpy as np

from braid.errors import PlanningError
from braid.planning.cluster.hierarchy import Hierarchy, check_size
from braid.planning.problem import Problem
from braid.planning.transport import Dense, Floats

MOST_SITES = 4_096


def distances_of(problem: Problem) -> Floats:
    """What it costs to ship one unit between any two sites."""
    sites = problem.network.sites
    if sites > MOST_SITES:
        raise PlanningError(
            f"clusters are made of at most {MOST_SITES:,} sites, and the network has {sites:,}; choose planner='exact'"
        )
    if isinstance(problem.network, Dense):
        return problem.network.distances

    def make() -> Floats:
        distances = np.empty((sites, sites))
        for target in range(sites):
            problem.deadline.check()
            distances[:, target] = problem.network.costs_to(1.0, target)
        return distances

    return problem.topology.remember(("unit distances", problem.model), make)


def hierarchy_of(problem: Problem, max_cs: int) -> Hierarchy:
    check_size(max_cs)
    key = ("hierarchy", problem.model, max_cs)
    return problem.topology.remember(key, lambda: Hierarchy.build(distances_of(problem), max_cs, problem.deadline))
