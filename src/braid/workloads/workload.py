"""A workload: queries that are planned one after the other, and the statistics of their streams."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from braid.model.advertisement import Advertisement
from braid.model.network.topology import Topology
from braid.model.query import Query
from braid.model.statistics import Statistics
from braid.planning.cost.models import CostModel, cost_model
from braid.planning.deployment import Deployment
from braid.planning.planners import Planner, solve
from braid.planning.problem import Problem


@dataclass(frozen=True, slots=True)
class Request:
    """A query, and the site where its result is wanted."""

    query: Query
    sink: str


@dataclass(frozen=True)
class Workload:
    """Requests in their order, with the statistics of the streams and the topology."""

    requests: tuple[Request, ...]
    statistics: Statistics
    topology: Topology

    def solve(
        self,
        planner: str | Planner = "exact",
        cost: str | CostModel = "network_usage",
        *,
        reuse: bool = True,
        weaken: bool = False,
    ) -> Iterator[Deployment]:
        """Plan the queries in turn. With `reuse`, each may use derived streams of the queries before it.

        With `weaken`, it may also weaken their filters, at the cost of shipping the additional rows.
        """
        known: set[tuple[str, str]] = set()
        offered: list[Advertisement] = []
        for request in self.requests:
            problem = Problem.of(request.query, self.statistics, self.topology, cost_model(cost), request.sink, offered)
            deployment = solve(problem, planner)
            if reuse:
                for advertisement in deployment.advertise(weaken=weaken):
                    identity = (_meaning(advertisement.query), advertisement.site)
                    if identity not in known:
                        known.add(identity)
                        offered.append(advertisement)
            yield deployment


def _meaning(query: Query) -> str:
    """A text for a derived stream; streams with the same text at the same site are duplicates."""
    sources = ", ".join(sorted(map(str, query.sources)))
    return f"{sources} where {' and '.join(sorted(map(str, query.predicates)))}"
