"""What this program does for the plan changes of a query, from one look to the next.

Nothing here is remembered between looks: what was said is in the log of changes, and how far sites have come is on
their channels. So a program that is killed and started again goes on where it was. The coordinator of a change is the
program that runs the first site of the old plan that gives results.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from braid.channels.channels import Channels
from braid.hosts.change_log import ChangeLog
from braid.hosts.registry import Registry
from braid.hosts.spark.driver.site_query import SiteQuery
from braid.model.window import FOREVER
from braid.runtime.migration.change import ChangeState, Phase, Stopped
from braid.runtime.migration.succession import divided
from braid.runtime.sites.deployed import Deployed
from braid.runtime.sites.generation import Generation


class Succession:
    """The plan changes of one query, as far as the sites of this program have a part in them."""

    def __init__(
        self, query: str, registry: Registry, channels: Channels, clock: Callable[[], float] = time.time
    ) -> None:
        self._query = query
        self._clock = clock
        self._registry = registry
        self._log: ChangeLog = registry.changes
        self._channels = channels

    def take_part(self, sites: Collection[str], parts: dict[tuple[int, str], SiteQuery]) -> None:
        """Say what there is to say of each change, and coordinate those that are this program's to coordinate."""
        for state in self._log.states(self._query):
            for site in sites:
                if (state.change.new, site) in parts:
                    self._prepare(site, parts[state.change.new, site], state)
                if (state.change.old, site) in parts:
                    parts[state.change.old, site].publisher.take_part(state)
            if state.change.answering[0] in sites:
                self._coordinate(self._log.state(state.change))

    def _prepare(self, site: str, part: SiteQuery, state: ChangeState) -> None:
        reached = part.readiness.reached(
            part.publisher.reached, state.change.level, lambda: self._registry.arrived(self._query)
        )
        ready = state.ready(site, reached)
        if ready is not None:
            self._log.say(state.change, ready)

    def _coordinate(self, state: ChangeState) -> None:
        deployed = self._registry.deployment(self._query)
        numbers = [generation.number for generation in deployed.generations]
        verdict = state.decides()
        if not state.phase.is_over and state.change.new not in numbers:
            self._log.end(state)  # It is of a deployment that is gone.
        elif verdict is not None:
            self._log.say(state.change, verdict)
        elif state.phase is Phase.SWITCHING and deployed.generation(state.change.new).reign is None:
            self._registry.announce(divided(deployed, state))
        elif state.phase.is_over and state.loser in numbers:
            loser = deployed.generation(state.loser)
            if not loser.is_retired:
                self._log.record(state, self._clock(), self._registry.copied(deployed, state.change))
                self._registry.retire(deployed, state)
            elif state.all_stopped(deployed.ending(loser.number)) and self._is_read(deployed, loser):
                self._registry.forget_generation(deployed, state.loser)
        elif state.phase.is_over:
            self._log.end(state)

    def _is_read(self, deployed: Deployed, generation: Generation) -> bool:
        """Whether everybody has read the results of a generation, as far as they count, and of all before it."""
        if generation.reign is None:
            return True
        if any(earlier.reign is not None and earlier.number < generation.number for earlier in deployed.generations):
            return False
        for channels in generation.results.values():
            for channel in map(self._channels.open, channels):
                last = channel.last()
                if last is not None and min(channel.released().values(), default=FOREVER) < last.number:
                    return False
        return True

    def stopped(self, generation: int, site: str) -> None:
        """A site here has stopped a generation that has ended."""
        for state in self._log.states(self._query):
            if state.phase.is_over and state.loser == generation:
                self._log.say(state.change, Stopped(site))

    def states_of(self, generation: int) -> list[ChangeState]:
        """The changes from a generation to a later one."""
        return [state for state in self._log.states(self._query) if state.change.old == generation]
