"""Random queries over random streams."""

from __future__ import annotations

import numpy as np

from braid.model.duration import UNITS
from braid.model.expressions.expression import Call, Column
from braid.model.network.topology import Topology
from braid.model.predicate import Predicate
from braid.model.query import Query, Source, Star
from braid.model.statistics import Statistics, Subject
from braid.model.window import Range
from braid.workloads.workload import Request, Workload


def synthetic(
    topology: Topology,
    *,
    streams: int = 10,
    queries: int = 100,
    joins: tuple[int, int] = (2, 5),
    rates: tuple[float, float] = (1.0, 100.0),
    selectivities: tuple[float, float] = (0.0001, 0.002),
    window_seconds: float = 10.0,
    seed: int = 1,
) -> Workload:
    """Streams at random sites with a random graph of equalities, and queries over connected parts of the graph.

    Rates, selectivities, the number of joins of a query and the sinks are uniformly distributed. Queries over the same
    streams have the same conditions, so one can reuse the joins of another.
    """
    generator = np.random.default_rng(seed)
    names = [f"s{stream}" for stream in range(streams)]
    ties = _ties(streams, generator)
    conditions = {tie: _equality(*(names[end] for end in tie)) for tie in ties}
    figures: dict[Subject, float] = {
        str(condition): float(generator.uniform(*selectivities)) for condition in conditions.values()
    }
    statistics = Statistics(
        rates={name: float(generator.uniform(*rates)) for name in names},
        selectivities=figures,
        sites={name: topology.names[int(generator.integers(len(topology.names)))] for name in names},
    )
    window = Range(round(window_seconds * UNITS["second"]))
    requests = []
    for _ in range(queries):
        count = min(streams, int(generator.integers(joins[0], joins[1] + 1)) + 1)
        chosen = _connected(count, streams, ties, generator)
        asked = [condition for tie, condition in conditions.items() if set(tie) <= chosen]
        sources = tuple(Source(names[stream], names[stream], window) for stream in sorted(chosen))
        sink = topology.names[int(generator.integers(len(topology.names)))]
        requests.append(Request(_query(sources, asked), sink))
    return Workload(tuple(requests), statistics, topology)


def _ties(streams: int, generator: np.random.Generator) -> list[tuple[int, int]]:
    """The pairs of streams with an equality: a random tree, and half as many pairs again."""
    ties = [(int(generator.integers(stream)), stream) for stream in range(1, streams)]
    pairs = [(left, right) for right in range(streams) for left in range(right)]
    others = [pair for pair in pairs if pair not in ties]
    extra = generator.permutation(len(others))[: streams // 2]
    return ties + [others[stream] for stream in extra]


def _connected(count: int, streams: int, ties: list[tuple[int, int]], generator: np.random.Generator) -> set[int]:
    """A random set of this many streams that equalities connect."""
    chosen = {int(generator.integers(streams))}
    while len(chosen) < count:
        touching = [tie for tie in ties if chosen & set(tie)]
        near = sorted({stream for tie in touching for stream in tie} - chosen)
        chosen.add(near[int(generator.integers(len(near)))])
    return chosen


def _equality(left: str, right: str) -> Predicate:
    column = f"{left}_{right}"
    return Predicate(Call("equal", (Column(left, column), Column(right, column))))


def _query(sources: tuple[Source, ...], predicates: list[Predicate]) -> Query:
    where = f" WHERE {' AND '.join(map(str, predicates))}" if predicates else ""
    return Query(f"SELECT * FROM {', '.join(map(str, sources))}{where}", sources, (Star(None),), tuple(predicates))
