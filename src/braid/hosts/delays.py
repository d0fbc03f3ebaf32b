"""What holds up a query: a site that does not run, one that a plan change waits for, or a silent stream."""

from __future__ import annotations

from collections.abc import Callable

from braid.hosts.registry import Registry
from braid.runtime.migration.change import ChangeState
from braid.runtime.silent_streams import SilentSources, silence_text
from braid.runtime.sites.deployed import Deployed

LOOK_SECONDS = 1.0
"""Seconds between two looks at what others have announced."""

PATIENCE_SECONDS = 30.0
"""How long something may hold up a query before a warning tells it."""


class Delays:
    """Tells what holds up one query. The program calls `look` again and again.

    Each thing is told once, when it has lasted for some seconds, and again if it has ended and comes back.
    """

    def __init__(self, registry: Registry, warn: Callable[[str], None], patience: float = PATIENCE_SECONDS) -> None:
        self._registry = registry
        self._warn = warn
        self._patience = patience
        self._looked = float("-inf")
        self._since: dict[str, float] = {}
        """What holds up the query, and since when."""
        self._told: set[str] = set()
        self._sources: SilentSources | None = None
        self._batches: dict[str, int] = {}
        """The last batch of each stream, by alias."""

    def look(self, deployed: Deployed, time: float) -> None:
        """See what holds up the query at a time in seconds since 1970, unless it has just been seen."""
        if time - self._looked < LOOK_SECONDS:
            return
        self._looked = time
        present = self._silent_sites(deployed, time)
        state = self._registry.changes.under_way(deployed.name)
        if state is not None and state.awaited:
            present.append(_waiting(state))
        self._since = {delay: self._since.get(delay, time) for delay in present}
        self._told &= self._since.keys()
        for delay, since in self._since.items():
            if time - since >= self._patience and delay not in self._told:
                self._told.add(delay)
                self._warn(delay)
        for warning in self._silent_streams(deployed, time):
            self._warn(warning)

    def _silent_streams(self, deployed: Deployed, time: float) -> list[str]:
        """What to tell of streams that bring nothing while others do."""
        if self._sources is None:
            self._sources = SilentSources(deployed.origins, time)
        batches = self._registry.batches_of_streams(deployed)
        for alias, number in batches.items():
            if number != self._batches.get(alias):
                self._sources.moved(alias, time)
        self._batches = batches
        streams = {alias: deployed.query.source(alias).declared.name for alias in self._sources.news()}
        sites = {stream: deployed.origins[alias] for alias, stream in streams.items()}
        return [silence_text(deployed.name, stream, site) for stream, site in sites.items()]

    def _silent_sites(self, deployed: Deployed, time: float) -> list[str]:
        silent, query = self._registry.roll_call.silent(deployed.sites, time), deployed.name
        return [f"site '{site}' does not run, so that query '{query}' waits for it; start it" for site in silent]


def _waiting(state: ChangeState) -> str:
    sites = " and ".join(f"site '{site}'" for site in state.awaited)
    return (
        f"the plan change of query '{state.change.query}' is {state.phase}, and waits for {sites}; "
        "start what does not run, or replan(); streams that pause hold it up, too"
    )
