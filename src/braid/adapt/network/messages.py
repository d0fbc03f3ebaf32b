"""The interface of the controllers at the sites: what they are told, and what they ask for."""

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
        """The kind of the message, in one word."""
        return type(self.content).__name__.lower()


Action = Send | Proposal
"""What a controller asks its host to do: to send a message, or to begin a plan change."""


class SiteController(Protocol):
    """Decides at one site, together with those at the other sites, on the plan of a query.

    It does nothing by itself. The host passes in the figures of the site and the messages of other sites, with the time
    in seconds, and carries out the actions that the methods return. Messages may be lost, late or repeated.
    """

    def observe(self, figures: SiteFigures, time: float) -> list[Action]:
        """The site has new figures of its own."""

    def receive(self, content: Any, time: float) -> list[Action]:
        """A message of another site has arrived."""

    def changed(self, plan: Deployment, generation: int, time: float) -> None:
        """From now on, this generation of the query, with this plan, gives its results."""

    def rewired(self, topology: Topology, time: float) -> list[Action]:
        """The links of the network have other figures now."""

    def gain(self) -> float | None:
        """The share of the cost that the last change has saved, by the figures known here; None if it is not known."""
