"""Everything to the sink: ship all streams there and join them. The baseline that plans are compared with."""

from __future__ import annotations

from dataclasses import dataclass

from braid.model.tree import JoinTree, Leaf, Merge
from braid.planning.problem import Problem
from braid.planning.solution.tree import TreeSolution


@dataclass(frozen=True)
class AtSink:
    """One join of all streams at the sink; without a sink, where the first stream starts."""

    name: str = "at_sink"

    def plan(self, problem: Problem) -> TreeSolution:
        leaves: tuple[JoinTree, ...] = tuple(Leaf(stream) for stream in problem.streams)
        if len(leaves) == 1:
            return TreeSolution(problem, leaves[0], {}, 1)
        tree = Merge(leaves)
        site = problem.origins[0] if problem.sink is None else problem.sink
        return TreeSolution(problem, tree, {tree: problem.topology.names[site]}, 1)
