"""`braid.plan`: plan a query over a network in one call."""

from __future__ import annotations

from collections.abc import Iterable

from braid.errors import PlanningError
from braid.language import parse
from braid.model.advertisement import Advertisement
from braid.model.network.topology import Topology
from braid.model.query import Query
from braid.model.statistics import Statistics
from braid.planning.cost.models import CostModel, cost_model
from braid.planning.deadline import Deadline
from braid.planning.deployment import Deployment
from braid.planning.planners import Planner, planner_of, solve
from braid.planning.problem import Problem


def plan(
    query: Query | str,
    statistics: Statistics,
    topology: Topology,
    *,
    planner: str | Planner = "exact",
    cost: str | CostModel = "network_usage",
    sink: str | None = None,
    advertised: Iterable[Advertisement] = (),
    deadline: float | None = None,
) -> Deployment:
    """Plan a query over a network: the order of its joins, and the site of each.

    `statistics` must have the rate and the site of each stream, and the selectivity of each join condition. `sink` is
    the site where the result is wanted; by default it stays where it is made. `advertised` are derived streams of other
    deployments (`Deployment.advertised`), which are used where that is cheaper. `deadline` is in seconds.

    >>> network = Topology.from_links([("paris", "lyon", 0.004), ("lyon", "nice", 0.006)])
    >>> known = Statistics(
    ...     rates={"f": 100, "b": 20},
    ...     selectivities={"f.num = b.flight": 0.0001},
    ...     sites={"f": "paris", "b": "nice"},
    ... )
    >>> text = "SELECT * FROM flights [RANGE 1 MINUTE] f, bags [RANGE 1 MINUTE] b WHERE f.num = b.flight"
    >>> print(plan(text, known, network, sink="lyon").explain())
    exact plan, 3 alternatives considered, result at lyon
    f ⋈ b at paris
      f at paris
      b at nice
    cost (network_usage, bytes in transit)
      ship b         nice -> paris  0.2
      deliver f ⋈ b  paris -> lyon  0.096
      total                         0.296 bytes in transit
    """
    chosen = planner_of(planner)
    limit = Deadline.of(chosen.name, deadline)
    parsed = parse(query) if isinstance(query, str) else query
    for argument, expected in ((parsed, Query), (statistics, Statistics), (topology, Topology)):
        if not isinstance(argument, expected):
            raise PlanningError(f"planning needs a {expected.__name__}, not {type(argument).__name__} {argument!r:.80}")
    refuse_views(parsed)
    if not parsed.ends_at_joins:
        raise PlanningError(
            f"queries with {parsed.later_parts} run at one site, and are not laid out over a network yet; "
            "plan the query without it, and join its results with the other streams at one site"
        )
    if parsed.distinct:
        raise PlanningError(
            "queries with DISTINCT run at one site, and are not laid out over a network yet; plan the query without "
            "it, and remove repeated results afterwards"
        )
    if parsed.ranking is not None:
        raise PlanningError(
            "queries with ROW_NUMBER() run at one site, and are not laid out over a network yet; plan the query "
            "without it, and rank its results afterwards"
        )
    for source in parsed.sources:
        if source.window.lifetime is None and not source.window.counts_rows:
            raise PlanningError(
                f"the window {source.window} of '{source.alias}' runs at one site, and is not laid out over a network "
                "yet; plan the query with [RANGE ..]"
            )
    problem = Problem.of(parsed, statistics, topology, cost_model(cost), sink, advertised, limit)
    return solve(problem, chosen)


def refuse_views(query: Query) -> None:
    """Refuse a query over a network whose text makes streams of its own."""
    if query.views:
        raise PlanningError(
            f"queries with tables, or with a SELECT or a window function in FROM, run at one site ({query.views[0]}); "
            "make such streams where they are read, and declare what comes of it"
        )
