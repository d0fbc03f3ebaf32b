"""A join that can be partitioned as a planning problem of its own: its inputs, and their figures by value."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from braid.model.expressions.expression import Call, Column
from braid.model.graph import AttributeClass
from braid.model.predicate import Predicate
from braid.model.query import Query, Source, Star
from braid.model.statistics import Others
from braid.model.tree import JoinTree
from braid.model.window import Unbounded
from braid.planning.cost.batch_headers import Headers
from braid.planning.cost.figures import LARGEST_TABLE
from braid.planning.cost.histograms import ValueRates, is_range, value_rates, width
from braid.planning.partition.find import Partitionable
from braid.planning.partition.values import ByValue
from braid.planning.problem import Problem
from braid.planning.solution.tree import TreeSolution
from braid.planning.stream_names import input_name


@dataclass(frozen=True, eq=False)
class ValuedInputs:
    """The inputs of a join by value of its attribute.

    `values` has the values, with a column of `figures` for each. The streams of `problem` are the inputs. `nulls` says
    whether some rows have null keys.
    """

    values: tuple[Hashable, ...]
    figures: ByValue
    problem: Problem
    nulls: bool

    @classmethod
    def of(
        cls, whole: TreeSolution, join: Partitionable, pieces: int = 1, listed: Iterable[Hashable] = ()
    ) -> ValuedInputs | None:
        """The inputs of a join of the whole plan; None if an input has no histogram, or the histograms have no values.

        Ranges are cut into `pieces`, and where a value or a range of `listed` begins or ends. If there are listed
        values, an input without a histogram has the same rate for each of them.
        """
        even = {value: float(width(value)) for value in listed}
        histograms = [_histogram(whole.problem, join, subtree, even) for subtree in join.inputs]
        known = [histogram for histogram in histograms if histogram]
        if len(known) < len(histograms):
            return None
        by_value = value_rates([*known, dict.fromkeys(even, 0.0)], pieces)
        if not by_value.values:
            return None
        figures = _figures(whole.problem, join, by_value._replace(rates=by_value.rates[:-1]))
        nulls = any(None in histogram for histogram in known)
        return cls(by_value.values, figures, _inner(whole, join, figures), nulls)


def _histogram(
    problem: Problem, join: Partitionable, subtree: JoinTree, otherwise: Mapping[Hashable, float]
) -> Mapping[Hashable, float]:
    """Rates by value of an input of a join: the histogram of its stream, scaled to the rate of the input."""
    stream = next(alias for alias in problem.streams if alias in subtree.streams & join.attribute.sources)
    key = join.attribute.key(stream)
    known = problem.statistics.histogram(problem.query.source(stream), key.name) if isinstance(key, Column) else None
    histogram = otherwise if known is None else known
    total = sum(histogram.values())
    scale = problem.figures.rate(problem.mask(subtree.streams)) / total if total else 0.0
    rates: dict[Hashable, float] = {}
    for value, rate in histogram.items():
        for compared in _keys(value, join.attribute):
            rates[compared] = rates.get(compared, 0.0) + rate * scale
    return rates


def _keys(value: Hashable, attribute: AttributeClass) -> Iterator[Hashable]:
    """A value of a column in the type in which keys are compared: columns of other types have other values for a key.

    Nothing for a value that cannot be a key: rows with it join nothing, and go with those that no part lists.
    """
    if attribute.type is None or value is None or is_range(value) or isinstance(value, Others):
        yield value
        return
    # A date, for example, is no timestamp, but can be cast to one.
    for kind in (attribute.type, None):
        with suppress(TypeError, ValueError, OverflowError, pa.ArrowException):
            yield pa.scalar(value, kind).cast(attribute.type).as_py()
            return


def _figures(problem: Problem, join: Partitionable, by_value: ValueRates) -> ByValue:
    """The figures of the inputs of a join, by value of the join attribute."""
    masks = [problem.mask(subtree.streams) for subtree in join.inputs]
    whole = problem.figures
    lengths = [whole.population(mask) / whole.rate(mask) if whole.rate(mask) else 0.0 for mask in masks]
    sizes = None if whole.sizes is None else whole.sizes.grouped(masks)
    names = tuple(input_name(problem.query, subtree) for subtree in join.inputs)
    figures = ByValue(names, by_value.rates, by_value.counts, np.array(lengths), sizes)
    if not _are_joins_measured(problem) or len(masks) > LARGEST_TABLE:
        return figures
    sets = range(1, 1 << len(masks))
    joined = [sum(mask for position, mask in enumerate(masks) if chosen >> position & 1) for chosen in sets]
    return figures.measured(np.array([1.0, *map(whole.rate, joined)]), _headers(problem, join))


def _are_joins_measured(problem: Problem) -> bool:
    """Whether selectivities of whole sets of streams are known. These are better than what follows from histograms."""
    return any(isinstance(subject, frozenset) for subject in problem.statistics.selectivities)


def _headers(problem: Problem, join: Partitionable) -> Headers | None:
    """The headers of batches; None if the batches of a stream are not known."""
    batches = dict(problem.statistics.batches)
    if any(stream not in batches for stream in problem.streams):
        return None
    return Headers(problem.query, tuple(subtree.streams for subtree in join.inputs), batches)


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
