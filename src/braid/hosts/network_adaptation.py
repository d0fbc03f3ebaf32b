"""Decides when the plan of a query changes between sites: central control, by the figures that sites announce."""

from __future__ import annotations

import logging

from braid.adapt.controller import Policy
from braid.adapt.network.central import CentralController
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


class NetworkAdaptation:
    """Decides on the plan of one query, in the program that coordinates its plan changes.

    All its input is announced, so another program can take over at any time.
    """

    def __init__(self, query: str, registry: Registry, policy: Policy) -> None:
        self._query = query
        self._registry = registry
        self._policy = policy
        self._controller: CentralController | None = None
        self._topology: Topology = registry.topology
        self._generation = 0
        self._began = 0.0
        """When this program first saw the current generation."""
        self._is_measured = True
        self._looked = float("-inf")

    def look(self, deployed: Deployed, time: float) -> Proposal | None:
        """The plan that the query should change to now, if there is one."""
        if time - self._looked < LOOK_SECONDS:
            return None
        self._looked = time
        if deployed.is_dropped or self._registry.changes.under_way(self._query) is not None:
            return None
        controller = self._following(deployed, time)
        if controller is None:
            return None
        for figures in self._registry.figures.told(self._query):
            controller.monitor.hear(figures)
        if self._topology is not self._registry.topology:
            self._topology = self._registry.topology
            controller.rewired(self._topology, time)
        self._measure(controller, time)
        if self._registry.figures.is_pinned(self._query):
            return None
        return next((action for action in controller.decide(time) if isinstance(action, Proposal)), None)

    def _following(self, deployed: Deployed, time: float) -> CentralController | None:
        """The controller, told of the current generation; None if the plan of this generation cannot change."""
        generation = deployed.current.number
        if generation == self._generation:
            return self._controller
        try:
            plan = self._registry.running_plan(deployed)
            self._registry.check_change(deployed, plan)
        except BraidError as reason:
            logger.info("query '%s' keeps its plan: %s", self._query, reason)
            self._controller, self._generation = None, generation
            return None
        is_change = self._controller is not None
        if self._controller is None:
            comparison = Comparison(plan, deployed.planner, self._policy, overlap=OVERLAP)
            self._controller = CentralController(HOME, HOME, comparison, generation)
        else:
            self._controller.changed(plan, generation, time)
        self._generation, self._began, self._is_measured = generation, time, not is_change
        return self._controller

    def _measure(self, controller: CentralController, time: float) -> None:
        """Record what the last change has saved, once the new plan has settled."""
        if not self._is_measured and time - self._began > SETTLED:
            gain = controller.gain()
            if gain is not None:
                self._registry.changes.measure(self._query, self._generation, gain)
                self._is_measured = True

    def clear(self) -> None:
        """Forget everything. datasketches reports sketches that are alive when Python ends as leaks."""
        self._controller, self._generation = None, 0
