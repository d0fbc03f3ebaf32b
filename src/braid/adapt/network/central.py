"""Central control (CNU of the NOS paper): all sites report to one of them, which plans anew.

A site reports when one of its figures has moved by more than the policy's `drift` since its last report. It also
reports from time to time, because a report may be lost. The planning site compares the running plan with the best one
for the figures of all sites.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from braid.adapt.network.figures import INTAKES, SiteFigures
from braid.adapt.network.messages import Action, Send
from braid.adapt.network.monitor import NetworkMonitor
from braid.adapt.network.proposal import Comparison
from braid.model.network.topology import Topology
from braid.planning.deployment import Deployment
from braid.planning.solution.written import written_of

RENEWED = 5.0
"""A site reports at least once in this many seconds, whether or not anything has moved."""


@dataclass(frozen=True)
class Report:
    """The figures of a site, for the planning site."""

    figures: SiteFigures


class CentralController:
    """The controller at one site. The one at `home`, the planning site, gets the figures of all sites.

    `generation` is the generation whose plan the comparison begins with, `topology` the network as it is now.
    """

    def __init__(
        self,
        site: str,
        home: str,
        comparison: Comparison,
        generation: int = INTAKES,
        topology: Topology | None = None,
    ) -> None:
        self._site = site
        self._home = home
        self._comparison = comparison
        problem = comparison.plan.solution.problem
        self._topology = topology or problem.topology
        self.monitor = NetworkMonitor.of(problem)
        self.monitor.follow(generation, written_of(comparison.plan.solution))
        self._reported: dict[int, tuple[SiteFigures, float]] = {}
        """The last report on each generation, and when it was sent."""

    def observe(self, figures: SiteFigures, time: float) -> list[Action]:
        if self._site == self._home:
            return self.receive(Report(figures), time)
        last, reported = self._reported.get(figures.generation, (None, time))
        is_known = last is not None and not figures.differs(last, self._comparison.policy.drift)
        if is_known and time - reported < RENEWED:
            return []
        self._reported[figures.generation] = figures, time
        return [Send(self._home, Report(figures))]

    def receive(self, content: Any, time: float) -> list[Action]:
        if not isinstance(content, Report) or not self.monitor.hear(content.figures):
            return []
        return self.decide(time)

    def changed(self, plan: Deployment, generation: int, time: float) -> None:
        self.monitor.follow(generation, written_of(plan.solution))
        self._comparison.changed(plan, time)

    def rewired(self, topology: Topology, time: float) -> list[Action]:
        self._topology = topology
        return self.decide(time) if self._site == self._home else []

    def gain(self) -> float | None:
        statistics = self.monitor.statistics()
        return None if statistics is None else self._comparison.gain(statistics, self._topology)

    def decide(self, time: float) -> list[Action]:
        """Compare plans by the figures known here. Call it again after a while, even if no figure has moved.

        Soon after a change, another one has to pay within a shorter time (see `Comparison`).
        """
        self.monitor.caution = self._comparison.caution(time)
        statistics = self.monitor.statistics()
        if statistics is None:
            return []
        proposal = self._comparison.best(statistics, self._topology, time)
        return [] if proposal is None else [proposal]
