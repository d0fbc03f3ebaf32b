"""Partitioned plans under other figures: the same parts with the same trees, priced anew."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from braid.planning.partition.inputs import ValuedInputs
from braid.planning.partition.parts import Part, PartitionedJoin
from braid.planning.problem import Problem
from braid.planning.solution.partitioned import PartitionedSolution
from braid.planning.solution.tree import TreeSolution


def repriced(solution: PartitionedSolution, problem: Problem) -> PartitionedSolution:
    """The same plan, priced by another problem of the same query.

    If that has no histogram for an input, all keys that the plan lists count as equally frequent there.
    """
    whole = replace(solution.whole, problem=problem)
    return PartitionedSolution(whole, tuple(_repriced(join, whole) for join in solution.joins), solution.considered)


def _repriced(partitioned: PartitionedJoin, whole: TreeSolution) -> PartitionedJoin:
    listed = [value for part in partitioned.parts for value in part.values]
    inputs = ValuedInputs.of(whole, partitioned.join, listed=listed)
    assert inputs is not None, "parts list values"
    labels = np.array([partitioned.label(value) for value in inputs.values])
    parts = []
    for label, part in enumerate(partitioned.parts):
        problem = replace(inputs.problem, figures=inputs.figures.part(labels == label))
        parts.append(Part(part.values, replace(part.solution, problem=problem)))
    return replace(partitioned, parts=tuple(parts))
