"""What each site knows of plan changes in a simulation, and the messages by which it comes to know it.

With central control every message goes to the coordinator, which tells all other sites. With distributed control every
site tells all others. Messages to a site that is away are lost. Each site has a log of what it has said: when it comes
back, it says all of it again, and asks for what it has missed. The coordinator of central control also logs what it was
told, and messages to it wait while it is away.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

from braid.runtime.migration.change import Change, ChangeState, Fact, fact_key, fact_to_json

Send = Callable[[str, str, int, Callable[[], None]], None]
"""Sends a number of bytes from one site to another, and calls back when they arrive, unless that site is away."""

Learned = Callable[[str, ChangeState], None]
"""Called when a site has learned something of a change."""


class Control:
    """The messages of plan changes between some sites. The coordinator is at `home`."""

    def __init__(self, sites: Sequence[str], home: str, is_central: bool, send: Send, learned: Learned) -> None:
        self._sites = sites
        self.home = home
        self._is_central = is_central
        self._send = send
        self._learned = learned
        self._known: dict[str, dict[str, ChangeState]] = {site: {} for site in sites}
        self._said: dict[str, dict[str, tuple[Change, list[Fact]]]] = defaultdict(dict)
        """The log of each site: what it has said of each change."""
        self.messages: Counter[str] = Counter()
        """How many messages of each kind were sent."""

    def states(self, site: str) -> list[ChangeState]:
        """What a site knows of all changes."""
        return list(self._known[site].values())

    def begin(self, change: Change) -> None:
        """The coordinator announces a change."""
        self._note(self.home, change)
        self._learn(self.home, change, [])
        self._tell(self.home, self._others(self.home), change, [])

    def say(self, site: str, change: Change, fact: Fact) -> None:
        """A site says something; it writes it down first."""
        self._note(site, change).append(fact)
        self._learn(site, change, [fact])
        if self._is_central and site != self.home:
            self._tell(site, [self.home], change, [fact])
        else:
            self._tell(site, self._others(site), change, [fact])

    def forget(self, site: str) -> None:
        """A site has lost its memory. What it has said itself is in its log."""
        if not (self._is_central and site == self.home):
            self._known[site] = {}

    def come_back(self, site: str) -> None:
        """A site says again what it has said, and asks for what it has missed."""
        for change, facts in self._said[site].values():
            self._learn(site, change, facts)
            self._tell(site, [self.home] if self._is_central else self._others(site), change, facts)
        asked = [self.home] if self._is_central else self._others(site)
        for other in asked:
            self._message("ask", site, other, 0, lambda other=other: self._answer(other, site))  # type: ignore[misc]

    def _answer(self, site: str, asking: str) -> None:
        for state in self.states(site):
            self._tell(site, [asking], state.change, list(state.facts.values()))

    def _note(self, site: str, change: Change) -> list[Fact]:
        _, facts = self._said[site].setdefault(change.key, (change, []))
        return facts

    def _others(self, site: str) -> list[str]:
        return [other for other in self._sites if other != site]

    def _tell(self, source: str, targets: Iterable[str], change: Change, facts: list[Fact]) -> None:
        kind = fact_key(facts[0]).split(" ")[0] if len(facts) == 1 else "change"
        content = json.dumps([change.to_json(), *(fact_to_json(fact) for fact in facts)])
        for target in targets:
            self._message(
                kind,
                source,
                target,
                len(content),
                lambda target=target: self._hear(target, change, facts),  # type: ignore[misc]
            )

    def _hear(self, site: str, change: Change, facts: list[Fact]) -> None:
        known = self._known[site].get(change.key)
        news = [fact for fact in facts if known is None or not known.has_said(fact)]
        if known is not None and not news:
            return
        self._learn(site, change, news)
        if self._is_central and site == self.home:
            self._tell(site, self._others(site), change, news)

    def _learn(self, site: str, change: Change, facts: list[Fact]) -> None:
        state = self._known[site].get(change.key, ChangeState(change)).told(*facts)
        self._known[site][change.key] = state
        self._learned(site, state)

    def _message(self, kind: str, source: str, target: str, size: int, then: Callable[[], None]) -> None:
        if target != source:
            self.messages[kind] += 1
            self._send(source, target, size, then)
