"""Plans of the queries of a network: those that requests ask for, and those that run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from braid.adapt.network.monitor import NetworkMonitor
from braid.adapt.network.proposal import priced
from braid.errors import PlanError, PlanningError
from braid.hosts.deployment_request import DeploymentRequest
from braid.hosts.figures_log import FiguresLog
from braid.model.advertisement import Advertisement
from braid.model.checks import check
from braid.model.network.topology import Topology, check_rewiring
from braid.model.query import Query
from braid.model.statistics import Statistics
from braid.planning.assumed import WITHOUT_STATISTICS, assumed_statistics
from braid.planning.cost.models import CostModel, cost_model
from braid.planning.deployment import Deployment
from braid.planning.plan import plan as plan_query
from braid.planning.problem import Problem
from braid.planning.solution.written import solution_of
from braid.runtime.sites.deployed import Deployed
from braid.runtime.sites.fitting import fitted


class DeployedPlans:
    """Makes and prices the plans of deployed queries."""

    def __init__(self, topology: Topology, figures: FiguresLog) -> None:
        self.topology = topology
        self._figures = figures
        self._models: dict[str, CostModel] = {}
        """Cost models of queries that were deployed here with one that has no name."""

    def price_by(self, name: str, cost: str | CostModel) -> None:
        """Price the plans of a query by a cost model. The document of the query has the name of one that has a name."""
        if not isinstance(cost, str):
            self._models[name] = cost

    def running(self, deployed: Deployed) -> Deployment:
        """The newest plan at work, priced by the figures of the sites.

        `PlanError` if its joins cannot be moved: it reuses joins of others.
        """
        generation = deployed.at_work[-1]
        if generation.written is None:
            raise PlanError(
                f"the plan of query '{deployed.name}' reuses joins of others, so that its joins cannot be moved one by "
                "one; use replan()"
            )
        known = self.statistics(deployed) or assumed_statistics(deployed.query)
        problem = Problem.of(
            deployed.query,
            replace(known, sites=deployed.origins),
            self.topology,
            self._model(deployed),
            deployed.sink,
        )
        return Deployment(generation.planner, solution_of(generation.written, problem))

    def predicted(self, deployed: Deployed, plan: Deployment) -> float | None:
        """The share of the cost that a plan saves by the figures of the sites; None if these are not known."""
        if self.statistics(deployed) is None:
            return None
        try:
            running = self.running(deployed)
            new = priced(plan, running.solution.problem)
        except (PlanError, PlanningError):
            return None  # It reuses joins of others, or a figure is out of range.
        return None if new is None or not running.cost else 1 - new.cost / running.cost

    def statistics(self, deployed: Deployed) -> Statistics | None:
        """The statistics of a query by the figures of its sites; None if the rate of a stream is not known yet."""
        monitor = NetworkMonitor(deployed.query, deployed.origins, deployed.sink)
        monitor.follow(deployed.current.number, deployed.current.written)
        for figures in self._figures.told(deployed.name):
            monitor.hear(figures)
        return monitor.statistics()

    def _model(self, deployed: Deployed) -> CostModel:
        if deployed.cost:
            return cost_model(deployed.cost)
        if deployed.name not in self._models:
            raise PlanError(
                f"query '{deployed.name}' was deployed by another program with a cost model that has no name; use "
                "replan() with one, or deploy it with the name of a cost model"
            )
        return self._models[deployed.name]

    def rewire(self, topology: Topology) -> None:
        """Use a topology whose links have other figures. Its sites and links must be the same."""
        check_rewiring(self.topology, topology)
        self.topology = topology

    def plan(
        self,
        request: DeploymentRequest,
        query: Query,
        origins: Mapping[str, str],
        advertised: Sequence[Advertisement] = (),
    ) -> Deployment:
        """The plan that a request asks for."""
        check(request.statistics, Statistics | None, "the statistics of a plan", PlanError)
        if request.plan is not None:
            return fitted(request.plan, request.deployment_name, query, origins, self.topology)
        known = replace(request.statistics or assumed_statistics(query), sites=origins)
        planner = request.planner or ("exact" if request.statistics is not None else WITHOUT_STATISTICS)
        return plan_query(
            query,
            known,
            self.topology,
            planner=planner,
            cost=request.cost,
            sink=request.sink,
            advertised=advertised,
        )
