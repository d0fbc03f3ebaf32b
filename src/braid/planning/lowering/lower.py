"""From the solution of a planner to the program of each site."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from braid.model.program import SiteProgram
from braid.planning.lowering.sequences import sequence_programs
from braid.planning.lowering.tree import tree_programs
from braid.planning.solution.partitioned import PartitionedSolution
from braid.planning.solution.sequenced import SequencedSolution
from braid.planning.solution.solution import Solution
from braid.planning.solution.tree import TreeSolution


def site_programs(solution: Solution) -> Mapping[str, SiteProgram]:
    """The program of each site; together they give the results of the query."""
    match solution:
        case TreeSolution():
            return tree_programs(solution)
        case PartitionedSolution():
            return tree_programs(solution.whole, solution.joins)
        case SequencedSolution():
            return sequence_programs(solution)
    assert_never(solution)
