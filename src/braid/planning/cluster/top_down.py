"""Top-Down: the top coordinator plans the whole query on its few nodes, each node its part of it, and so on down."""

from __future__ import annotations

from dataclasses import dataclass

from braid.planning.cluster.hierarchies import hierarchy_of
from braid.planning.cluster.views import Views
from braid.planning.order.exact import tree_of
from braid.planning.problem import Problem
from braid.planning.solution.tree import TreeSolution


@dataclass(frozen=True)
class TopDown:
    """All join orders are weighed at the top, on distances that are known roughly; places become exact on the way down.

    `considered` counts the plans that exhaustive search within each cluster looks at.
    """

    max_cs: int = 32
    name: str = "top_down"

    def plan(self, problem: Problem) -> TreeSolution:
        hierarchy = hierarchy_of(problem, self.max_cs)
        views = Views(problem, hierarchy, self.name)
        top = hierarchy.levels[-1][0]
        choice = views.solve(views.sources(), top, hierarchy.height, problem.sink)
        return TreeSolution(problem, *tree_of(choice, problem), views.considered)
