"""How many streams of a query start in the clusters around its sink."""

from __future__ import annotations

from collections.abc import Iterator

from braid.planning.cluster.hierarchies import hierarchy_of
from braid.planning.cluster.views import Views
from braid.planning.cost.models import MODELS
from braid.planning.problem import Problem
from braid.workloads.workload import Workload


def found_below_the_top(workload: Workload, max_cs: int) -> int:
    """The number of queries with two or more streams, but not all, in a cluster on the way up from the sink."""
    return sum(
        any(2 <= _streams(views, level) < len(views.problem.streams) for level in range(1, views.hierarchy.height + 1))
        for views in _views(workload, max_cs)
    )


def found_in_one_cluster(workload: Workload, max_cs: int) -> int:
    """The number of queries with all their streams in one cluster of the lowest level."""
    return sum(
        len({views.hierarchy.representative(origin, 2) for origin in views.problem.origins}) == 1
        for views in _views(workload, max_cs)
    )


def _views(workload: Workload, max_cs: int) -> Iterator[Views]:
    for request in workload.requests:
        problem = Problem.of(
            request.query, workload.statistics, workload.topology, MODELS["network_usage"], request.sink
        )
        yield Views(problem, hierarchy_of(problem, max_cs), "counting")


def first_level_with_all(views: Views) -> int:
    """The level of the first cluster, from the sink upwards, that has all streams of the query."""
    return next(
        level for level in range(1, views.hierarchy.height + 1) if _streams(views, level) == len(views.problem.streams)
    )


def _streams(views: Views, level: int) -> int:
    """The number of streams that start below the sink's cluster of a level."""
    sink = views.problem.sink
    assert sink is not None
    cluster = views.hierarchy.cluster(views.hierarchy.representative(sink, level), level)
    return sum(views.below(cluster, level, origin) for origin in views.problem.origins)
