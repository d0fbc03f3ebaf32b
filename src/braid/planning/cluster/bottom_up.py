"""Bottom-Up: each coordinator, from the sink upwards, joins the streams in its cluster and passes on the rest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from braid.planning.cluster.hierarchies import hierarchy_of
from braid.planning.cluster.hierarchy import Cluster
from braid.planning.cluster.views import Views
from braid.planning.order.exact import Choice, tree_of
from braid.planning.problem import Problem
from braid.planning.solution.tree import TreeSolution


@dataclass(frozen=True)
class BottomUp:
    """Joins streams as soon as a cluster on the way up from the sink has them, regardless of the other streams.

    `considered` counts the plans that exhaustive search within each cluster would compare.
    """

    max_cs: int = 32
    name: str = "bottom_up"

    def plan(self, problem: Problem) -> TreeSolution:
        views = Views(problem, hierarchy_of(problem, self.max_cs), self.name)
        choice = climb(views, self)
        return TreeSolution(problem, *tree_of(choice, problem), views.considered)

    def joins_now(self, views: Views, local: Sequence[Choice], level: int) -> bool:
        """Whether to join the local streams at this level; Bottom-Up always does."""
        return True


def climb(views: Views, planner: BottomUp) -> Choice:
    """Go up from the sink and join the streams that each cluster has, until one cluster has all of them."""
    problem, hierarchy = views.problem, views.hierarchy
    start = problem.origins[0] if problem.sink is None else problem.sink
    inputs = views.sources()
    for level in range(1, hierarchy.height + 1):
        cluster = hierarchy.cluster(hierarchy.representative(start, level), level)
        local = [stream for stream in inputs if views.below(cluster, level, stream.site)]
        if len(local) == len(inputs):
            return views.solve(inputs, cluster, level, problem.sink)
        if len(local) > 1 and planner.joins_now(views, local, level):
            inputs = [stream for stream in inputs if stream not in local]
            inputs += _joined(views, local, cluster, level)
    raise AssertionError("the top cluster has every site below it")


def _joined(views: Views, local: Sequence[Choice], cluster: Cluster, level: int) -> Iterable[Choice]:
    """The local streams, with those joined that conditions tie together."""
    for group in tied_groups(views.problem, local):
        yield views.solve(group, cluster, level, cluster.coordinator)


def tied_groups(problem: Problem, inputs: Iterable[Choice]) -> list[list[Choice]]:
    """The inputs in groups that conditions of the query tie together, directly or through other inputs."""
    groups: list[list[Choice]] = []
    for stream in inputs:
        touching = [group for group in groups if any(problem.tied(stream.mask, other.mask) for other in group)]
        groups = [group for group in groups if group not in touching]
        groups.append([choice for group in touching for choice in group] + [stream])
    return groups
