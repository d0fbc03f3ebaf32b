"""What the controllers of different sites send each other, and what comes of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from braid.adapt.network.figures import SiteFigures
from braid.adapt.network.proposal import Proposal
from braid.model.network.topology import Topology
from braid.planning.deployment import Deployment


@dataclass(frozen=True)
class Send:
    """A message for another site."""

    target: str
    content: Any

    @property
    def kind(self) -> str:
        """What kind of message it is, in one word."""
        return type(self.content).__name__.lower()


Outcome = Send | Proposal


class SiteController(Protocol):
    """The part that one site has in deciding on the plan of a query.

    It does nothing by itself: the host gives it what the site has seen and what others have sent, with the time in
    seconds, carries its messages to other sites, and begins the change that it proposes. A message may be lost with
    the site that it is for, late or repeated.
    """

    def observe(self, figures: SiteFigures, time: float) -> list[Outcome]:
        """The site has new figures of its own."""

    def receive(self, content: Any, time: float) -> list[Outcome]:
        """A message of another site has come."""

    def changed(self, plan: Deployment, generation: int, time: float) -> None:
        """A generation of plans of the query answers from now on."""

    def rewired(self, topology: Topology, time: float) -> list[Outcome]:
        """The network has changed: its links have other figures."""

    def gain(self) -> float | None:
        """The share of the cost that the last change has saved, by what is known here now."""
