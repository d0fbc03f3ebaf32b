"""Who decides on the plan of a query in a program: one controller, or one for each site that the program runs."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from braid.adapt.controller import Policy
from braid.adapt.network.proposal import Proposal
from braid.channels.channels import Channels
from braid.hosts.distributed_adaptation import DistributedAdaptation
from braid.hosts.network_adaptation import HOME, CentralAdaptation, NetworkAdaptation
from braid.hosts.registry import Registry
from braid.runtime.sites.deployed import Deployed


class PlanControllers:
    """The controllers of one query in one program. `kind` is "central" or "distributed"."""

    def __init__(self, query: str, registry: Registry, channels: Channels, policy: Policy, kind: str) -> None:
        self._query = query
        self._registry = registry
        self._channels = channels
        self._policy = policy
        self._is_central = kind == "central"
        self._adaptations: dict[str, NetworkAdaptation[Any]] = {}

    def look(self, deployed: Deployed, sites: Collection[str], time: float) -> Proposal | None:
        """The plan that the query should change to now, if there is one, as the program that runs some sites sees it.

        Only the program that coordinates plan changes gets one.
        """
        coordinates = next(iter(deployed.current.results), None) in sites
        deciding = ([HOME] if coordinates else []) if self._is_central else sites
        proposals = [self._at(site).look(deployed, time) for site in deciding]
        return next((proposal for proposal in proposals if proposal is not None), None)

    def _at(self, site: str) -> NetworkAdaptation[Any]:
        if site not in self._adaptations:
            self._adaptations[site] = (
                CentralAdaptation(self._query, self._registry, self._policy)
                if self._is_central
                else DistributedAdaptation(self._query, site, self._registry, self._channels, self._policy)
            )
        return self._adaptations[site]

    def clear(self) -> None:
        """Forget everything. datasketches reports sketches that are alive when Python ends as leaks."""
        for adaptation in self._adaptations.values():
            adaptation.clear()
        self._adaptations.clear()
