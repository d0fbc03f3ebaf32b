"""PMJoin: joins on one attribute, with a plan for each part of its values."""

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
    """The plan of the heuristic, with partitioned joins where histograms of the join attribute are known.

    `considered` counts as the heuristic does, over all parts.
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
        """The same with one more join in parts, or as one part if that costs less.

        Parts are planned as if what comes out of them were wanted nowhere; if much does, it may cost more to bring it
        from many sites to where it goes on.
        """
        options, considered = [], solution.considered
        for parts in sorted({self.parts, 1}, reverse=True):
            found = replace(self, parts=parts).partition(solution.whole, join)
            if found is not None:
                considered += sum(part.solution.considered for part in found.parts)
                options.append(replace(solution, joins=(*solution.joins, found)))
        best = min(options, key=lambda option: option.bill.total, default=solution)
        return replace(best, considered=considered)

    def partition(self, whole: TreeSolution, join: Partitionable) -> PartitionedJoin | None:
        """A plan for each part of a join; None where no histograms say what the values are."""
        histograms = [_histogram(whole.problem, join, part) for part in join.inputs]
        known = [histogram for histogram in histograms if histogram is not None]
        if len(known) < len(histograms):
            return None
        found = value_rates(known, self.parts)
        if not found.values:
            return None
        figures = _figures(whole.problem, join, found)
        parts = self.parts_of(_inner(whole, join, figures), figures, found.values)
        nulls = any(None in histogram for histogram in known)
        return PartitionedJoin(join, tuple(parts), self.function, nulls)

    def parts_of(self, problem: Problem, figures: ByValue, values: Sequence[Hashable]) -> Iterator[Part]:
        """A plan for each part of the values of a join on one attribute."""
        count = min(self.parts, len(values))
        labels = FUNCTIONS[self.function](figures.rates, count, problem.deadline, figures.counts)
        for label in np.unique(labels):
            chosen = labels == label
            solution = StreamJoinOpt(self.name).plan(replace(problem, figures=figures.part(chosen)))
            yield Part(tuple(value for value, taken in zip(values, chosen, strict=True) if taken), solution)


def _histogram(problem: Problem, join: Partitionable, part: JoinTree) -> Mapping[Hashable, float] | None:
    """Rates by value of what comes into a join: those of its stream, scaled to what is left of it, or made of it."""
    stream = next(alias for alias in problem.streams if alias in part.streams & join.attribute.sources)
    key = join.attribute.key(stream)
    if not isinstance(key, Column):
        return None
    histogram = problem.statistics.histogram(problem.query.source(stream), key.name)
    if histogram is None:
        return None
    total = sum(histogram.values())
    scale = problem.figures.rate(problem.mask(part.streams)) / total if total else 0.0
    return {value: rate * scale for value, rate in histogram.items()}


def _figures(problem: Problem, join: Partitionable, found: ValueRates) -> ByValue:
    masks = [problem.mask(part.streams) for part in join.inputs]
    figures = problem.figures
    lengths = [figures.population(mask) / figures.rate(mask) if figures.rate(mask) else 0.0 for mask in masks]
    sizes = tuple(figures.size(mask) for mask in masks) if figures.sized else None
    names = tuple(input_name(problem.query, part) for part in join.inputs)
    return ByValue(names, found.rates, found.counts, np.array(lengths), sizes)


def _inner(whole: TreeSolution, join: Partitionable, figures: ByValue) -> Problem:
    """The partitioned join as a problem of its own: its inputs are streams, all tied by one attribute."""
    problem = whole.problem
    origins = tuple(problem.topology.position(whole.site(part)) for part in join.inputs)
    query = star_query(figures.streams)
    return replace(problem, query=query, figures=figures, origins=origins, sink=None, offers=())


def star_query(streams: Sequence[str]) -> Query:
    """A join of all these streams on one key."""
    sources = tuple(Source(name, name, Unbounded()) for name in streams)
    keys = [Column(name, "key") for name in streams]
    equal = tuple(Predicate(Call("equal", (keys[0], key))) for key in keys[1:])
    return Query(f"join of {', '.join(streams)} on one key", sources, (Star(None),), equal)
