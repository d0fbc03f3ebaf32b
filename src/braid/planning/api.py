"""Planning a query over a network, in one call."""

from __future__ import annotations

from collections.abc import Iterable

from braid.errors import PlanningError
from braid.model.advertisement import Advertisement
from braid.model.query import Query
from braid.model.statistics import Statistics
from braid.model.topology import Topology
from braid.planning.cost.models import CostModel, cost_model
from braid.planning.deployment import Deployment
from braid.planning.planners import Planner, planner_of
from braid.planning.problem import Deadline, Problem


def plan(
    query: Query,
    statistics: Statistics,
    topology: Topology,
    *,
    planner: str | Planner = "exact",
    cost: str | CostModel = "network_usage",
    sink: str | None = None,
    advertised: Iterable[Advertisement] = (),
    deadline: float | None = None,
) -> Deployment:
    """Lay a query out over a network: which joins first, and which join where.

    `statistics` must know the rate and the site of each stream, and the selectivity of each join condition; `sink` is
    where the result is wanted (anywhere, if nobody says); `advertised` are derived streams that other deployments make
    (`Deployment.advertised`), used where that is cheaper; `deadline` is in seconds.
    """
    for given, kind in ((query, Query), (statistics, Statistics), (topology, Topology)):
        if not isinstance(given, kind):
            raise PlanningError(f"planning needs a {kind.__name__}, not {type(given).__name__} {given!r:.80}")
    chosen = planner_of(planner)
    problem = Problem.of(query, statistics, topology, cost_model(cost), sink, advertised)
    return Deployment(chosen.name, chosen.plan(problem, Deadline.of(deadline)))
