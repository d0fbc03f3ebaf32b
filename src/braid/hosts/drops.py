"""Dropping a query whose sites run in several programs: all of them stop it before its channels are removed.

The program that drops it asks for it by a document. Each site that sees the document stops its part and says so. When
all have, the query is withdrawn, and each site removes its own checkpoints.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from uuid import uuid4

from braid.channels.channels import Channels
from braid.errors import BraidError, RunError
from braid.hosts.registry import DROP, Registry
from braid.runtime.sites.deployed import Deployed

STOPPED = "stopped"
"""The kind of document by which a site says that it has stopped its part of a query."""

LOOK_SECONDS = 0.2
"""Seconds between two looks at which sites have stopped."""


class Drops:
    """The queries of a network that are being dropped."""

    def __init__(self, registry: Registry, channels: Channels) -> None:
        self._registry = registry
        self._channels = channels

    def drop(self, name: str, wait: float) -> Deployed | None:
        """Drop a query that sites in other programs run; returns what goes on for others. Nothing of it runs here.

        What an earlier query still ran for this one ends, too, if nobody else needs it.
        """
        deployed = self.droppable(name)
        if deployed is None:
            return None
        remaining = self.end(deployed, wait)
        while unused := self.unused():
            for other in unused:
                self.end(other, wait)
        return remaining

    def droppable(self, name: str) -> Deployed | None:
        """A query that is deployed, to drop it; `BraidError` if there is none, or if only others use what is left.

        None if the program that dropped it died when it had withdrawn it. The request that was left is gone then, too.
        """
        deployments = self._registry.deployments()
        is_withdrawn = name not in deployments and not deployments.is_unreadable(name)
        if is_withdrawn and name in self.asked():
            self._forget(name, self._registry.topology.names)
            return None
        deployed = self._registry.deployment(name)
        users = self._registry.users(deployed)
        if deployed.is_dropped and users:
            raise BraidError(f"query '{name}' is dropped already; its joins go on for {', '.join(users)}")
        return deployed

    def end(self, deployed: Deployed, wait: float) -> Deployed | None:
        """Let all sites stop a query, wait for them, and withdraw it; returns what goes on for other queries."""
        self.ask(deployed.name)
        ends = time.monotonic() + wait
        while missing := self.running(deployed):
            if time.monotonic() > ends:
                raise RunError(
                    f"query '{deployed.name}' is not dropped yet: site {' and site '.join(missing)} has not stopped "
                    "its part; start what is not there, and drop the query again"
                )
            time.sleep(LOOK_SECONDS)
        remaining = self._registry.withdraw(deployed)
        self._forget(deployed.name, deployed.sites)
        return remaining

    def _forget(self, name: str, sites: Iterable[str]) -> None:
        """Forget the request to drop a query, and that these sites have stopped it."""
        for site in sites:
            self._channels.withdraw(STOPPED, _key(name, site))
        self._channels.withdraw(DROP, name)

    def ask(self, name: str) -> None:
        """Ask all sites to stop a query; to ask again changes nothing."""
        if name not in self._channels.announced(DROP):
            self._channels.announce(DROP, name, {"request": uuid4().hex})

    def asked(self) -> frozenset[str]:
        """The queries that all sites are to stop."""
        return frozenset(self._channels.announced(DROP))

    def stopped(self, name: str, site: str) -> None:
        """Announce that a site has stopped its part of a query, in answer to the current request only."""
        request = self._channels.announced(DROP).get(name)
        if request is not None and self._channels.announced(STOPPED).get(_key(name, site)) != request:
            self._channels.announce(STOPPED, _key(name, site), request)

    def running(self, deployed: Deployed) -> list[str]:
        """The sites that have not stopped their part."""
        requests, stopped = self._channels.announced(DROP), self._channels.announced(STOPPED)
        if requests.is_damaged(deployed.name):
            return sorted(deployed.sites)
        request = requests.get(deployed.name)
        return sorted(site for site in deployed.sites if stopped.get(_key(deployed.name, site)) != request)

    def unused(self) -> list[Deployed]:
        """Dropped queries whose remaining joins nobody reads any more."""
        left = [other for other in self._registry.deployments().values() if other.is_dropped]
        return [other for other in left if not self._registry.users(other)]


def _key(name: str, site: str) -> str:
    return f"{name} at {site}"
