"""Top-Down: the top coordinator plans the query on its few nodes; each node plans its joins again, and so on down."""

from __future__ import annotations

from dataclasses import dataclass

from braid.planning.cluster.hierarchies import hierarchy_of
from braid.planning.cluster.views import Views
from braid.planning.order.exact import tree_of
from braid.planning.problem import Problem
from braid.planning.solution.tree import TreeSolution


@dataclass(frozen=True)
class TopDown:
    """The top compares all join orders, on estimated distances; the levels below choose the exact sites.

    `considered` counts the plans that exhaustive search within each cluster would compare.
    """

    max_cs: int = 32
    name: str = "top_down"

    def plan(self, problem: Problem) -> TreeSolution:
        hierarchy = hierarchy_of(problem, self.max_cs)
        views = Views(problem, hierarchy, self.name)
        top = hierarchy.levels[-1][0]
        choice = views.solve(views.sources(), top, hierarchy.height, problem.sink)
        return TreeSolution(problem, *tree_of(choice, problem), views.considered)
