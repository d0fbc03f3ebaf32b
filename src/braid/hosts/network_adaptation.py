"""Decides when the plan of a query changes between sites: central control, by the figures that sites announce.

`distributed_adaptation.py` has distributed control.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from braid.adapt.controller import Policy
from braid.adapt.network.central import CentralController
from braid.adapt.network.messages import SiteController
from braid.adapt.network.proposal import Comparison, Proposal
from braid.errors import BraidError
from braid.hosts.registry import Registry
from braid.model.network.topology import Topology
from braid.runtime.sites.deployed import Deployed

logger = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""Seconds between two comparisons of plans."""

OVERLAP = 10.0
"""The seconds that two plans are expected to run side by side on Spark, where each starts streaming queries."""

SETTLED = 10.0
"""The gain of a change is measured this many seconds after it."""

HOME = ""
"""The name of the planning site. It does not matter: sites announce their figures, and send it no messages."""


Controller = TypeVar("Controller", bound=SiteController)


class NetworkAdaptation(ABC, Generic[Controller]):
    """What both kinds of control have in common: a controller that follows the plan of one query."""

    pause = LOOK_SECONDS
    """Seconds between two looks."""

    def __init__(self, query: str, registry: Registry, policy: Policy) -> None:
        self._query = query
        self._registry = registry
        self._policy = policy
        self._controller: Controller | None = None
        self._comparison: Comparison | None = None
        self._topology: Topology = registry.topology
        self._generation = 0
        self._began = 0.0
        """When this program first saw the current generation."""
        self._is_measured = True
        self._looked = float("-inf")

    def look(self, deployed: Deployed, time: float) -> Proposal | None:
        """The plan that the query should change to now, if there is one."""
        if time - self._looked < self.pause:
            return None
        self._looked = time
        if deployed.is_dropped or self._registry.changes.under_way(self._query) is not None:
            return None
        controller = self._following(deployed, time)
        return None if controller is None else self._decide(controller, deployed, time)

    @abstractmethod
    def _made(self, comparison: Comparison, generation: int) -> Controller:
        """A new controller, which begins with the plan of a generation."""

    @abstractmethod
    def _decide(self, controller: Controller, deployed: Deployed, time: float) -> Proposal | None:
        """Tell the controller what is new, and return what it proposes."""

    def _following(self, deployed: Deployed, time: float) -> Controller | None:
        """The controller, told of the current generation; None if the plan of this generation cannot change."""
        generation = deployed.current.number
        if generation == self._generation:
            return self._controller
        try:
            plan = self._registry.plans.running(deployed)
            self._registry.fitted_plan(deployed, plan)
        except BraidError as reason:
            logger.info("query '%s' keeps its plan: %s", self._query, reason)
            self._controller, self._generation = None, generation
            return None
        is_change = self._controller is not None
        if self._controller is None:
            self._comparison = Comparison(plan, deployed.planner, self._policy, overlap=OVERLAP)
            self._controller = self._made(self._comparison, generation)
        else:
            self._controller.changed(plan, generation, time)
        self._generation, self._began, self._is_measured = generation, time, not is_change
        return self._controller

    def _measure(self, deployed: Deployed, time: float) -> None:
        """Record what the last change has saved by the figures of all sites, once the new plan has settled."""
        if not self._is_measured and time - self._began > SETTLED and self._comparison is not None:
            statistics = self._registry.plans.statistics(deployed)
            gain = None if statistics is None else self._comparison.gain(statistics, self._topology)
            if gain is not None:
                self._registry.changes.measure(self._query, self._generation, gain)
                self._is_measured = True

    def clear(self) -> None:
        """Forget everything. datasketches reports sketches that are alive when Python ends as leaks."""
        self._controller, self._generation = None, 0


class CentralAdaptation(NetworkAdaptation[CentralController]):
    """Central control, in the program that coordinates the plan changes of a query.

    All its input is announced, so another program can take over at any time.
    """

    def _made(self, comparison: Comparison, generation: int) -> CentralController:
        return CentralController(HOME, HOME, comparison, generation)

    def _decide(self, controller: CentralController, deployed: Deployed, time: float) -> Proposal | None:
        for figures in self._registry.figures.told(self._query):
            controller.monitor.hear(figures)
        if self._topology is not self._registry.topology:
            self._topology = self._registry.topology
            controller.rewired(self._topology, time)
        self._measure(deployed, time)
        if self._registry.figures.is_pinned(self._query):
            return None
        return next((action for action in controller.decide(time) if isinstance(action, Proposal)), None)
