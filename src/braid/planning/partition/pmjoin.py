"""PMJoin: joins on one attribute have a separate plan for each part of its values."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from braid.errors import PlanningError, did_you_mean
from braid.model.checks import check, check_positive
from braid.model.expressions.expression import Call, Column
from braid.model.predicate import Predicate
from braid.model.query import Query, Source, Star
from braid.model.tree import JoinTree
from braid.model.window import Unbounded
from braid.planning.cost.histograms import ValueRates, value_rates
from braid.planning.order.stream_join_opt import StreamJoinOpt
from braid.planning.partition.find import Partitionable, choose_partitions, find_partitions
from braid.planning.partition.functions import FUNCTIONS
from braid.planning.partition.parts import Part, PartitionedJoin
from braid.planning.partition.values import ByValue
from braid.planning.problem import Problem
from braid.planning.solution.partitioned import PartitionedSolution
from braid.planning.solution.tree import TreeSolution
from braid.planning.stream_names import input_name


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
        for parts in sorted({self.parts, 1}, reverse=True):
            partitioned = replace(self, parts=parts).partition(solution.whole, join)
            if partitioned is not None:
                considered += sum(part.solution.considered for part in partitioned.parts)
                options.append(replace(solution, joins=(*solution.joins, partitioned)))
        best = min(options, key=lambda option: option.bill.total, default=solution)
        return replace(best, considered=considered)

    def partition(self, whole: TreeSolution, join: Partitionable) -> PartitionedJoin | None:
        """A plan for each part of a join; None if an input has no histogram, or the histograms have no values."""
        histograms = [_histogram(whole.problem, join, subtree) for subtree in join.inputs]
        known = [histogram for histogram in histograms if histogram is not None]
        if len(known) < len(histograms):
            return None
        rates = value_rates(known, self.parts)
        if not rates.values:
            return None
        figures = _figures(whole.problem, join, rates)
        parts = self.parts_of(_inner(whole, join, figures), figures, rates.values)
        nulls = any(None in histogram for histogram in known)
        return PartitionedJoin(join, tuple(parts), self.function, nulls)

    def parts_of(self, problem: Problem, figures: ByValue, values: Sequence[Hashable]) -> Iterator[Part]:
        """A plan for each part of the values of a join on one attribute."""
        count = min(self.parts, len(values))
        labels = FUNCTIONS[self.function](figures.rates, count, problem.deadline, figures.counts)
        for label in np.unique(labels):
            in_part = labels == label
            solution = StreamJoinOpt(self.name).plan(replace(problem, figures=figures.part(in_part)))
            yield Part(tuple(value for value, chosen in zip(values, in_part, strict=True) if chosen), solution)


def _histogram(problem: Problem, join: Partitionable, subtree: JoinTree) -> Mapping[Hashable, float] | None:
    """Rates by value of an input of a join: the histogram of its stream, scaled to the rate of the input."""
    stream = next(alias for alias in problem.streams if alias in subtree.streams & join.attribute.sources)
    key = join.attribute.key(stream)
    if not isinstance(key, Column):
        return None
    histogram = problem.statistics.histogram(problem.query.source(stream), key.name)
    if histogram is None:
        return None
    total = sum(histogram.values())
    scale = problem.figures.rate(problem.mask(subtree.streams)) / total if total else 0.0
    return {value: rate * scale for value, rate in histogram.items()}


def _figures(problem: Problem, join: Partitionable, rates: ValueRates) -> ByValue:
    """The figures of the inputs of a join, by value of the join attribute."""
    masks = [problem.mask(subtree.streams) for subtree in join.inputs]
    figures = problem.figures
    lengths = [figures.population(mask) / figures.rate(mask) if figures.rate(mask) else 0.0 for mask in masks]
    sizes = None if figures.sizes is None else figures.sizes.grouped(masks)
    names = tuple(input_name(problem.query, subtree) for subtree in join.inputs)
    return ByValue(names, rates.rates, rates.counts, np.array(lengths), sizes)


def _inner(whole: TreeSolution, join: Partitionable, figures: ByValue) -> Problem:
    """The partitioned join as a separate problem, whose streams are the inputs, all joined on one key."""
    problem = whole.problem
    origins = tuple(problem.topology.position(whole.site(subtree)) for subtree in join.inputs)
    query = star_query(figures.streams)
    return replace(problem, query=query, figures=figures, origins=origins, sink=None, offers=())


def star_query(streams: Sequence[str]) -> Query:
    """A join of all these streams on one key."""
    sources = tuple(Source(name, name, Unbounded()) for name in streams)
    keys = [Column(name, "key") for name in streams]
    equal = tuple(Predicate(Call("equal", (keys[0], key))) for key in keys[1:])
    return Query(f"join of {', '.join(streams)} on one key", sources, (Star(None),), equal)
