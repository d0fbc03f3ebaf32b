"""A planner for tests that divides every join it can into parts of the keys, also where that does not pay."""

from __future__ import annotations

from dataclasses import dataclass, replace

from braid.planning.order.stream_join_opt import StreamJoinOpt
from braid.planning.partition.find import choose_partitions, find_partitions
from braid.planning.partition.pmjoin import PMJoin
from braid.planning.problem import Problem
from braid.planning.solution.partitioned import PartitionedSolution


@dataclass(frozen=True)
class AlwaysDividing(PMJoin):
    """`PMJoin`, but keys are always divided where they have histograms, however dear that is."""

    name: str = "dividing"

    def plan(self, problem: Problem) -> PartitionedSolution:
        solution = PartitionedSolution(StreamJoinOpt().plan(problem), (), 1)
        for join in choose_partitions(problem, find_partitions(problem, solution.tree)):
            partitioned = self.partition(solution.whole, join)
            if partitioned is not None:
                solution = replace(solution, joins=(*solution.joins, partitioned))
        return solution
