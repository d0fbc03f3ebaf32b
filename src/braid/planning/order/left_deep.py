"""The cheapest left-deep plan: every join has at least one single stream as an input."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from braid.planning.order.exact import Exact, inputs_of, optimise, tree_of
from braid.planning.order.subsets import levels
from braid.planning.problem import Problem
from braid.planning.solution.tree import TreeSolution


@dataclass(frozen=True)
class LeftDeep(Exact):
    """The optimum over left-deep trees and placements: every other split costs infinity."""

    name: str = "left_deep"

    def plan(self, problem: Problem) -> TreeSolution:
        inputs = inputs_of(problem, self.name)
        works = {}
        for level in levels(len(problem.streams)):
            problem.deadline.check()
            single = (np.bitwise_count(level.lefts) == 1) | (np.bitwise_count(level.rights) == 1)
            for row, mask in enumerate(level.masks.tolist()):
                work = 0.0 if inputs.works is None else inputs.works[mask]
                works[mask] = np.where(single[row], work, np.inf)
        optimum = optimise(replace(inputs, works=works), problem.deadline)
        tree, placement = tree_of(optimum.choice(problem.sink), problem)
        return TreeSolution(problem, tree, placement, optimum.considered)
