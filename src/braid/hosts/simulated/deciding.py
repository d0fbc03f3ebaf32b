"""Who decides on the plan of a query in a simulation: a controller at each site, and the messages between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from braid.adapt.controller import Policy
from braid.adapt.network.central import CentralController
from braid.adapt.network.distributed import DistributedController
from braid.adapt.network.figures import SiteFigures
from braid.adapt.network.messages import Action, Send, SiteController
from braid.adapt.network.proposal import Comparison, Proposal
from braid.model.network.topology import Topology
from braid.planning.deployment import Deployment
from braid.planning.planners import Planner

TELL_SECONDS = 0.1
"""A site looks at its figures at most so often, in seconds of virtual time."""


class Wire(Protocol):
    """What carries messages in a simulation."""

    @property
    def now(self) -> float: ...
    def clock(self, site: str) -> float: ...
    def send_message(self, source: str, target: str, told: str, then: Callable[[], None]) -> None: ...


class Deciding:
    """The controllers of one query, and the plans they propose. `propose` is called at `home`."""

    def __init__(
        self,
        kind: str,
        sites: Sequence[str],
        home: str,
        plan: Deployment,
        planner: str | Planner,
        policy: Policy | None,
        wire: Wire,
        propose: Callable[[Proposal], None],
    ) -> None:
        self._kind = kind
        self._home = home
        self._wire = wire
        self._propose = propose
        self._planner, self._policy = planner, policy
        self._plan, self._generation = plan, 1
        self._topology = plan.solution.problem.topology
        self._controllers = {site: self._made(site) for site in sites}
        self._followed = dict.fromkeys(sites, self._generation)
        """The generation whose plan the controller of each site compares with others."""
        self._told: dict[tuple[int, str], float] = {}
        self.messages: Counter[str] = Counter()

    def _made(self, site: str) -> SiteController:
        comparison = Comparison(self._plan, self._planner, self._policy)
        if self._kind == "central":
            return CentralController(site, self._home, comparison, self._generation, self._topology)
        return DistributedController(site, comparison, self._generation, self._topology)

    def wants_figures(self, generation: int, site: str) -> bool:
        """Whether it is time to look at the figures of a site again."""
        last = self._told.get((generation, site))
        return last is None or self._wire.now - last >= TELL_SECONDS

    def observe(self, figures: SiteFigures) -> None:
        """A site has new figures."""
        self._told[figures.generation, figures.site] = self._wire.now
        self._handle(figures.site, self._controllers[figures.site].observe(figures, self._wire.clock(figures.site)))

    def changed(self, site: str, plan: Deployment, generation: int) -> None:
        """A site has learned that another plan answers now."""
        if generation > self._generation:
            self._plan, self._generation = plan, generation
        self._followed[site] = generation
        self._controllers[site].changed(plan, generation, self._wire.clock(site))

    def rewired(self, site: str, topology: Topology) -> None:
        """A site sees that the links of the network have other figures now."""
        self._topology = topology
        self._handle(site, self._controllers[site].rewired(topology, self._wire.clock(site)))

    def forget(self, site: str) -> None:
        """A site has lost its memory."""
        self._controllers[site], self._followed[site] = self._made(site), self._generation

    def gain(self) -> float | None:
        """The share of the cost that the last change has saved, as the site that begins changes knows it."""
        return self._controllers[self._home].gain()

    def _handle(self, site: str, actions: Sequence[Action]) -> None:
        for action in actions:
            if isinstance(action, Send):
                self._carry(site, action)
            elif site == self._home:
                self._propose(action)
            else:
                self._count("proposal")
                arrive = partial(self._arrive, action, self._followed[site])
                self._wire.send_message(site, self._home, "proposal", arrive)

    def _arrive(self, proposal: Proposal, generation: int) -> None:
        """A proposal has come to the site that begins changes. One to replace an earlier plan is no news."""
        if generation == self._followed[self._home]:
            self._propose(proposal)

    def _carry(self, source: str, message: Send) -> None:
        target = message.target

        def deliver() -> None:
            self._handle(target, self._controllers[target].receive(message.content, self._wire.clock(target)))

        self._count(message.kind)
        self._wire.send_message(source, target, message.kind, deliver)

    def _count(self, kind: str) -> None:
        self.messages[kind] += 1
