"""What each site knows of plan changes in a simulation, and the messages by which it comes to know it.

With central control every message goes to the coordinator, which tells all other sites. With distributed control every
site tells all others. Messages are lost if the site that they are for is away, or if their sender dies. Each site has a
log of what it has said: when it comes back, it says all of it again, and asks for what it has missed. The coordinator
of central control also logs what it was told, which it tells all others when it comes back. Messages to it wait while
it is away.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

from braid.runtime.migration.change import Change, ChangeState, Fact, fact_key

Send = Callable[[str, str, str, Callable[[], None]], None]
"""Sends a message from a site to another, told in a few words, and calls back when it is there, unless it is lost."""

Learned = Callable[[str, ChangeState], None]
"""Called when a site has learned something of a change."""


class ChangeMessages:
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

    def state(self, site: str, change: Change) -> ChangeState | None:
        """What a site knows of a change; None if it knows nothing of it."""
        return self._known[site].get(change.key)

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
        if self._is_central and site == self.home:
            self._tell_again()
            return
        others = [self.home] if self._is_central else self._others(site)
        for change, facts in list(self._said[site].values()):
            self._learn(site, change, facts)
            self._tell(site, others, change, facts)
        for other in others:
            self._message("ask", site, other, "what is new?", lambda other=other: self._answer(other, site))  # type: ignore[misc]

    def _tell_again(self) -> None:
        """The coordinator may have died before it had told everybody what it knows, or acted on it."""
        for state in self.states(self.home):
            self._learned(self.home, state)
            self._tell(self.home, self._others(self.home), state.change, list(state.facts.values()))

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
        told = ", ".join(map(fact_key, facts))
        for target in targets:
            self._message(
                kind,
                source,
                target,
                f"{change.key} {told}".strip(),
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

    def _message(self, kind: str, source: str, target: str, told: str, then: Callable[[], None]) -> None:
        if target != source:
            self.messages[kind] += 1
            self._send(source, target, told, then)
