"""What each site knows of plan changes in a simulation, and the messages that spread this knowledge.

With central control a site sends each message to the coordinator, which passes it on to all other sites. With
distributed control a site sends it to all others. A message is lost if its target is away, or if its sender dies; but
messages to the coordinator wait while it is away.

Each site has a log of what it has said. When it comes back, it sends all of it again, and asks for what it has missed.
With central control the coordinator also logs what it was told, and sends that to all others when it comes back.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

from braid.runtime.migration.change import Change, ChangeState, Fact, fact_key

Send = Callable[[str, str, str, Callable[[], None]], None]
"""Sends a message from a site to another. The text describes it; the function is called when it arrives, if it does."""

Learned = Callable[[str, ChangeState], None]
"""Called when a site has learned something about a change."""


class ChangeMessages:
    """The messages about plan changes between some sites. The coordinator is at `home`."""

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
        """What a site knows of a change; None if nothing."""
        return self._known[site].get(change.key)

    def begin(self, change: Change) -> None:
        """The coordinator announces a change."""
        self._note(self.home, change)
        self._learn(self.home, change, [])
        self._tell(self.home, self._others(self.home), change, [])

    def say(self, site: str, change: Change, fact: Fact) -> None:
        """A site states a fact: it logs the fact, then sends it."""
        self._note(site, change).append(fact)
        self._learn(site, change, [fact])
        if self._is_central and site != self.home:
            self._tell(site, [self.home], change, [fact])
        else:
            self._tell(site, self._others(site), change, [fact])

    def forget(self, site: str) -> None:
        """A site has lost its memory. It still has its log, and that of the central coordinator has all it knows."""
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
        """The coordinator sends all it knows: it may have died before it had told everybody, or acted on it."""
        for state in self.states(self.home):
            self._learned(self.home, state)
            self._tell(self.home, self._others(self.home), state.change, list(state.facts.values()))

    def _answer(self, site: str, asking: str) -> None:
        for state in self.states(site):
            self._tell(site, [asking], state.change, list(state.facts.values()))

    def _note(self, site: str, change: Change) -> list[Fact]:
        """The log of a site about a change; begins it if there is none."""
        _, facts = self._said[site].setdefault(change.key, (change, []))
        return facts

    def _others(self, site: str) -> list[str]:
        return [other for other in self._sites if other != site]

    def _tell(self, source: str, targets: Iterable[str], change: Change, facts: list[Fact]) -> None:
        kind = fact_key(facts[0]).split(" ")[0] if len(facts) == 1 else "change"
        text = f"{change.key} {', '.join(map(fact_key, facts))}".strip()
        for target in targets:
            self._message(kind, source, target, text, lambda target=target: self._hear(target, change, facts))  # type: ignore[misc]

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

    def _message(self, kind: str, source: str, target: str, text: str, on_arrival: Callable[[], None]) -> None:
        if target != source:
            self.messages[kind] += 1
            self._send(source, target, text, on_arrival)
