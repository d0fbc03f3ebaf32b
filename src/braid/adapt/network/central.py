"""Central control (CNU of the NOS paper): sites report to one of them, which plans anew.

A site reports when a figure of its own has moved by more than the drift of the policy since its last report, and from
time to time: a report may be lost. The one that plans compares the running plan with the best one for what all have
reported.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from braid.adapt.network.figures import INTAKES, SiteFigures
from braid.adapt.network.messages import Outcome, Send
from braid.adapt.network.monitor import NetworkMonitor
from braid.adapt.network.proposal import Comparison
from braid.model.network.topology import Topology
from braid.planning.deployment import Deployment

RENEWED = 5.0
"""A site reports again after so many seconds, whether or not anything has moved."""


@dataclass(frozen=True)
class Report:
    """The figures of a site, for the one that plans."""

    figures: SiteFigures


class CentralController:
    """The part of one site. At `home`, the site that plans, it has the figures of all sites.

    `generation` is the one whose plan the comparison begins with, `topology` the network as it is now.
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
        self.monitor.follow(generation)
        self._reported: dict[int, tuple[SiteFigures, float]] = {}
        """The last report on each generation of plans, and when it was."""

    def observe(self, figures: SiteFigures, time: float) -> list[Outcome]:
        if self._site == self._home:
            return self.receive(Report(figures), time)
        last, reported = self._reported.get(figures.generation, (None, time))
        is_known = last is not None and not figures.differs(last, self._comparison.policy.drift)
        if is_known and time - reported < RENEWED:
            return []
        self._reported[figures.generation] = figures, time
        return [Send(self._home, Report(figures))]

    def receive(self, content: Any, time: float) -> list[Outcome]:
        if not isinstance(content, Report) or not self.monitor.hear(content.figures):
            return []
        return self.decide(time)

    def changed(self, plan: Deployment, generation: int, time: float) -> None:
        self.monitor.follow(generation)
        self._comparison.changed(plan, time)

    def rewired(self, topology: Topology, time: float) -> list[Outcome]:
        self._topology = topology
        return self.decide(time) if self._site == self._home else []

    def gain(self) -> float | None:
        statistics = self.monitor.statistics()
        return None if statistics is None else self._comparison.gain(statistics, self._topology)

    def decide(self, time: float) -> list[Outcome]:
        """Compare plans by what is known here. Some time after a change, more may pay than soon after it."""
        self.monitor.caution = self._comparison.caution(time)
        statistics = self.monitor.statistics()
        if statistics is None:
            return []
        proposal = self._comparison.best(statistics, self._topology, time)
        return [] if proposal is None else [proposal]
