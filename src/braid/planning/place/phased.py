"""Plan, then deploy: the order is chosen first, for small results; then every join gets the best place for it."""

from __future__ import annotations

from dataclasses import dataclass

from braid.planning.order.exact import check_limits, tree_of
from braid.planning.place.shape import place, smallest_results
from braid.planning.problem import Problem
from braid.planning.solution.tree import TreeSolution


@dataclass(frozen=True)
class Phased:
    """The best placement of the tree with the smallest results; `considered` counts joins tried at sites."""

    name: str = "phased"

    def plan(self, problem: Problem) -> TreeSolution:
        check_limits(len(problem.streams), problem.network.sites, self.name)
        shape = smallest_results(problem)
        choice = place(problem, shape)
        considered = len(shape.joins()) * problem.network.sites
        return TreeSolution(problem, *tree_of(choice, problem), considered)
