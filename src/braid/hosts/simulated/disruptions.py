"""What goes wrong in a simulation that runs: sites that are away, a broker that restarts, messages that get lost."""

from __future__ import annotations

import random
from collections.abc import Callable
from math import inf
from typing import Protocol

from braid.hosts.simulated.agenda import Agenda
from braid.hosts.simulated.broker import Broker
from braid.hosts.simulated.faults import Faults, Schedule
from braid.hosts.simulated.trace import Trace


class Died(Exception):  # noqa: N818
    """A site has died in the middle of what it was doing; not an error of anything."""


class Sites(Protocol):
    """What happens to the sites of a simulation when something goes wrong."""

    def forget(self, site: str) -> None:
        """A site has lost what was in its memory."""

    def come_back(self, site: str) -> None:
        """A site is there again."""

    def resume(self) -> None:
        """The broker is there again."""


class Disruptions:
    """Lets things go wrong, as scheduled and by chance. Nothing goes wrong by chance after `last` seconds."""

    def __init__(
        self,
        faults: Faults,
        schedule: Schedule,
        last: float,
        agenda: Agenda,
        chance: random.Random,
        trace: Trace,
        sites: Sites,
    ) -> None:
        self._faults = faults
        self._schedule = schedule
        self._last = last
        self._agenda = agenda
        self._chance = chance
        self._trace = trace
        self._sites = sites
        self._away: dict[str, float] = {}
        """The sites that are away, and until when."""
        self.broker = Broker()
        self.calm_since = 0.0
        """When the last of what has gone wrong so far is over."""
        self._put_on_agenda()

    def _put_on_agenda(self) -> None:
        at, schedule = self._agenda.at, self._schedule
        for begin, end, site in schedule.absences:
            at(begin, lambda site=site, end=end: self.leave(site, end))  # type: ignore[misc]
        for begin, end, operations in schedule.restarts:
            at(begin, lambda operations=operations, end=end: self._restart(operations, end))  # type: ignore[misc]
        for begin, end, side in schedule.partitions:
            self._tell(begin, end, f"nothing gets from {', '.join(side)} to the others or back")
        for begin, end, link, factor in schedule.slowdowns:
            self._tell(begin, end, f"{link} {'carries nothing' if factor == inf else f'is {factor:g} times slower'}")
        for begin, end, alias in schedule.silences:
            self._tell(begin, end, f"stream '{alias}' is silent")
        for site, ahead in (schedule.clocks or {}).items():
            if ahead:
                self._trace.note(site, f"its clock is {abs(ahead):.3f} seconds {'fast' if ahead > 0 else 'slow'}")

    def _tell(self, begin: float, end: float, what: str) -> None:
        def happens() -> None:
            self._trace.note("", f"{what} until {end:.4f}")
            self.calm_since = max(self.calm_since, end)

        self._agenda.at(begin, happens)

    def strikes(self, chance: float) -> bool:
        """Whether something goes wrong that happens with this chance."""
        strikes = chance > 0 and self._agenda.now < self._last and self._chance.random() < chance
        if strikes:
            self.calm_since = max(self.calm_since, self._agenda.now)
        return strikes

    # Sites

    def away_until(self, site: str) -> float | None:
        """Until when a site is away; None if it is there."""
        return self._away.get(site)

    def leave(self, site: str, end: float) -> None:
        """A site dies. What it had in memory is gone, and it is away until it comes back."""
        end = self._away[site] = max(end, self._away.get(site, end))
        self.calm_since = max(self.calm_since, end)
        self._trace.note(site, f"dies, and is away until {end:.4f}")
        self._sites.forget(site)
        self._agenda.at(end, lambda: self._return(site))

    def _return(self, site: str) -> None:
        if self._away.get(site, self._agenda.now) <= self._agenda.now and site in self._away:
            del self._away[site]
            self._trace.note(site, "is back")
            self._sites.come_back(site)

    def _die_at_message(self, site: str) -> bool:
        """Whether a site dies at a control message."""
        if not self.strikes(self._faults.crash_rate):
            return False
        self.leave(site, self._agenda.now + self._chance.uniform(0, self._faults.seconds))
        return True

    # The broker

    def _restart(self, operations: int, end: float) -> None:
        self._trace.note("", f"the broker restarts, and is back at {end:.4f}")
        self.broker.restart(operations, end)
        self.calm_since = max(self.calm_since, end)
        self._agenda.at(end, self._resume)

    def _resume(self) -> None:
        if self.broker.come_back(self._agenda.now):
            self._trace.note("", "the broker is back")
            self._sites.resume()

    # Messages

    def send(self, source: str, target: str, told: str, arrives: float, then: Callable[[], None], waits: bool) -> None:
        """Carry a control message that arrives at a moment.

        It is lost if its sender dies before, or if its target is away or dies; but for a target that is away it may
        wait. Who dies stops in the middle of what it does: `Died`.
        """
        if source in self._away or self._die_at_message(source):
            self._trace.note(source, f"has died before it could tell {target}: {told}")
            raise Died
        if self.strikes(self._faults.delays):
            arrives += self._chance.uniform(0, self._faults.seconds)
        self._trace.note(source, f"tells {target}: {told}")
        copies = 2 if self.strikes(self._faults.repeats) else 1
        for copy in range(copies):
            moment = arrives + copy * self._chance.uniform(0, self._faults.seconds)
            self._agenda.at(moment, lambda: self._deliver(source, target, told, then, waits))

    def _deliver(self, source: str, target: str, told: str, then: Callable[[], None], waits: bool) -> None:
        # Control messages are documents beside the channels: they wait for the broker.
        wait = self.broker.back
        if waits and target in self._away:
            wait = max(wait or 0.0, self._away[target])
        if wait is not None:
            self._agenda.at(wait, lambda: self._deliver(source, target, told, then, waits))
        elif target in self._away:
            self._trace.note(target, f"is away, and misses of {source}: {told}")
        elif self._die_at_message(target):
            if waits:
                self._deliver(source, target, told, then, waits)
            raise Died
        else:
            then()
            if self._die_at_message(target):
                raise Died

    def clock(self, site: str) -> float:
        """What the clock of a site shows."""
        return self._schedule.clock(site, self._agenda.now)
