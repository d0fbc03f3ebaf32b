"""PMJoin: joins on one attribute have a separate plan for each part of its values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from braid.errors import PlanningError, did_you_mean
from braid.model.checks import check, check_positive
from braid.model.statistics import Others
from braid.planning.order.stream_join_opt import StreamJoinOpt
from braid.planning.partition.find import Partitionable, choose_partitions, find_partitions
from braid.planning.partition.functions import FUNCTIONS
from braid.planning.partition.inputs import ValuedInputs
from braid.planning.partition.parts import Part, PartitionedJoin
from braid.planning.partition.values import ByValue
from braid.planning.problem import Problem
from braid.planning.solution.partitioned import PartitionedSolution
from braid.planning.solution.tree import TreeSolution


@dataclass(frozen=True)
class PMJoin:
    """The plan of `StreamJoinOpt`, with partitioned joins where the join attribute has histograms.

    `considered` counts the volumes that `StreamJoinOpt` compared, over all parts.
    """

    parts: int = 8
    function: str = "rate"
    name: str = "pmjoin"

    def __post_init__(self) -> None:
        check(self.function, str, "a partition function", PlanningError)
        if self.function not in FUNCTIONS:
            raise PlanningError(
                f"there is no partition function '{self.function}'; {did_you_mean(self.function, FUNCTIONS)}"
            )
        check_positive(self.parts, "the parts of a key space", PlanningError)

    def plan(self, problem: Problem) -> PartitionedSolution:
        whole = StreamJoinOpt(self.name).plan(problem)
        solution = PartitionedSolution(whole, (), whole.considered)
        for join in choose_partitions(problem, find_partitions(problem, whole.tree)):
            solution = self._divide(solution, join)
        return solution

    def _divide(self, solution: PartitionedSolution, join: Partitionable) -> PartitionedSolution:
        """The solution with one more join divided into parts, or planned as a single part if that costs less.

        Parts are planned without the cost of shipping their results. If the results are large, shipping them from many
        sites may cost more than the parts save.
        """
        options, considered = [], solution.considered
        numbers = {self.parts, 1}
        if solution.problem.statistics.batches:
            numbers |= {self.parts // 4, self.parts // 2} - {0}  # Many small parts cost more headers than they save.
        for parts in sorted(numbers, reverse=True):
            partitioned = replace(self, parts=parts).partition(solution.whole, join)
            if partitioned is not None:
                considered += sum(part.solution.considered for part in partitioned.parts)
                options.append(replace(solution, joins=(*solution.joins, partitioned)))
        best = min(options, key=lambda option: option.bill.total, default=solution)
        return replace(best, considered=considered)

    def partition(self, whole: TreeSolution, join: Partitionable) -> PartitionedJoin | None:
        """A plan for each part of a join; None if an input has no histogram, or the histograms have no values."""
        inputs = ValuedInputs.of(whole, join, self.parts)
        if inputs is None:
            return None
        parts = list(self.parts_of(inputs.problem, inputs.figures, inputs.values))
        if inputs.figures.has_headers:
            parts = list(_united(parts, inputs))
        # The first part has all values that no other part lists.
        with_others_first = sorted(parts, key=lambda part: not any(isinstance(value, Others) for value in part.values))
        return PartitionedJoin(join, tuple(with_others_first), self.function, inputs.nulls)

    def parts_of(self, problem: Problem, figures: ByValue, values: Sequence[Hashable]) -> Iterator[Part]:
        """A plan for each part of the values of a join on one attribute."""
        count = min(self.parts, len(values))
        labels = FUNCTIONS[self.function](figures.rates, count, problem.deadline, figures.counts)
        for label in np.unique(labels):
            in_part = labels == label
            solution = StreamJoinOpt(self.name).plan(replace(problem, figures=figures.part(in_part)))
            yield Part(tuple(value for value, chosen in zip(values, in_part, strict=True) if chosen), solution)


def _united(parts: Sequence[Part], inputs: ValuedInputs) -> Iterator[Part]:
    """The parts, where those with the same plan are one: each part costs headers of its own."""
    alike: dict[Hashable, list[Part]] = defaultdict(list)
    for part in parts:
        alike[part.solution.tree, tuple(sorted(part.solution.placement.items(), key=str))].append(part)
    for same in alike.values():
        values = frozenset(value for part in same for value in part.values)
        figures = inputs.figures.part(np.array([value in values for value in inputs.values]))
        solution = replace(same[0].solution, problem=replace(inputs.problem, figures=figures))
        yield Part(tuple(value for value in inputs.values if value in values), solution)
