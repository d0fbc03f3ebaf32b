"""Plan, then place: choose the join order with the smallest results, then the best site for every join."""

from __future__ import annotations

from dataclasses import dataclass

from braid.planning.order.exact import check_limits, tree_of
from braid.planning.place.shape import place, smallest_results
from braid.planning.problem import Problem
from braid.planning.solution.tree import TreeSolution


@dataclass(frozen=True)
class Phased:
    """The best placement of the tree with the smallest results; `considered` counts joins times sites."""

    name: str = "phased"

    def plan(self, problem: Problem) -> TreeSolution:
        check_limits(len(problem.streams), problem.transport.sites, self.name)
        shape = smallest_results(problem)
        choice = place(problem, shape)
        considered = len(shape.joins()) * problem.transport.sites
        return TreeSolution(problem, *tree_of(choice, problem), considered)
