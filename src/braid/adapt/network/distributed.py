"""Distributed control (DNU of the NOS paper): sites reorder their probe sequences among themselves.

When the figures of a site have moved, it sends a token along the probe sequence of each head. The token carries the
figures of the sites that it has visited. At each position of the sequence, each site computes what it would cost to
probe its own stream there. If a later stream costs less than the one at the position, the two swap. When all tokens are
back, the sequences are those that greedy planning at one site would find from the same figures.

Several sites may send tokens at the same time. A site that has learned something while its tokens were under way sends
them again, because they may have been handled before the news had arrived.

A site knows of other sites only what tokens bring. No site has to know the figures of all others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from braid.adapt.network.figures import INTAKES, SiteFigures
from braid.adapt.network.messages import Action, Send
from braid.adapt.network.monitor import NetworkMonitor
from braid.adapt.network.proposal import Comparison
from braid.adapt.network.token import Token
from braid.errors import PlanningError
from braid.model.network.topology import Topology
from braid.planning.deployment import Deployment
from braid.planning.order.greedy import candidate, joinable
from braid.planning.problem import Problem
from braid.planning.solution.sequenced import HeadPlan, Position, SequencedSolution
from braid.planning.solution.written import written_of

PATIENCE = 10.0
"""A site takes tokens for lost that are not back after this many seconds, and a proposal that has changed nothing."""


class DistributedController:
    """The controller at one site. It changes plans that are a probe sequence for each stream, and leaves others alone.

    `generation` is the generation whose plan the comparison begins with, `topology` the network as it is now.
    """

    def __init__(
        self, site: str, comparison: Comparison, generation: int = INTAKES, topology: Topology | None = None
    ) -> None:
        self._site = site
        self._comparison = comparison
        problem = comparison.plan.solution.problem
        self._topology = topology or problem.topology
        names = problem.topology.names
        self._sites = tuple(names[origin] for origin in problem.origins)
        self.monitor = NetworkMonitor.of(problem)
        self.monitor.follow(generation, written_of(comparison.plan.solution))
        self._known: dict[tuple[int, str], SiteFigures] = {}
        """The figures that were known when the site last sent tokens."""
        self._is_in_order = False
        """Whether the running plan is what the last round has found."""
        self._rounds = 0
        self._sent: float | None = None
        """When the tokens of the current round were sent; None if no round is under way."""
        self._back: dict[int, HeadPlan] = {}
        """The sequences of the tokens of this round that are back, by head."""
        self._proposed: float | None = None
        """When the site last proposed another plan than the running one; None if it has nothing to propose."""
        self._cached: tuple[int, Topology, Problem] | None = None

    @property
    def _own(self) -> list[int]:
        """The streams that start at this site."""
        return [stream for stream, site in enumerate(self._sites) if site == self._site]

    def observe(self, figures: SiteFigures, time: float) -> list[Action]:
        self.monitor.hear(figures)
        if self._sent is not None and time - self._sent >= PATIENCE:
            self._known, self._is_in_order = {}, False
        if self._is_news(figures):
            return self._begin(time)
        is_lost = self._proposed is not None and time - self._proposed >= PATIENCE
        return self._propose(time) if self._all_back and (is_lost or self._comparison.is_too_early) else []

    def receive(self, content: Any, time: float) -> list[Action]:
        if not isinstance(content, Token):
            return []
        for figures in content.figures:
            self.monitor.hear(figures)
        return self._pass_on([content], time)

    def changed(self, plan: Deployment, generation: int, time: float) -> None:
        self.monitor.follow(generation, written_of(plan.solution))
        self._comparison.changed(plan, time)
        self._is_in_order = self._all_back and self._is_running(self._found)
        self._sent, self._back, self._proposed = None, {}, None

    def rewired(self, topology: Topology, time: float) -> list[Action]:
        self._topology = topology
        self._is_in_order = False
        return self._begin(time)

    def gain(self) -> float | None:
        return self._comparison.gain(self.monitor.guess(), self._topology)

    def _is_news(self, figures: SiteFigures) -> bool:
        """Whether figures have moved since the site last sent tokens."""
        known = self._known.get(figures.source)
        return known is None or figures.differs(known, self._comparison.policy.drift)

    def _begin(self, time: float) -> list[Action]:
        """Begin a round, unless none can begin now: send a token along the sequence of each head."""
        solution = self._comparison.plan.solution
        is_under_way = self._sent is not None and time - self._sent < PATIENCE
        if is_under_way or not self._own or not isinstance(solution, SequencedSolution):
            return []
        self._rounds += 1
        self._sent, self._back = time, {}
        is_of_others = any(figures.site != self._site and self._is_news(figures) for figures in self.monitor.figures)
        changed = self._own if self._is_in_order and not is_of_others else range(len(self._sites))
        self._known = {figures.source: figures for figures in self.monitor.figures}
        tokens = [Token.along((self._site, self._rounds), sequence, changed) for sequence in solution.heads]
        return self._pass_on(tokens, time)

    def _pass_on(self, tokens: Iterable[Token], time: float) -> list[Action]:
        """Handle each token as far as this site can, and send it on."""
        actions: list[Action] = []
        for token in tokens:
            while not token.is_done and self._sites[token.next_stream] == self._site:
                token = self._handle(token)
            if not token.is_done:
                actions.append(self._send(self._sites[token.next_stream], token))
            elif token.round[0] != self._site:
                actions.append(self._send(token.round[0], token))
            elif token.round[1] == self._rounds and self._sent is not None:
                self._back[token.sequence.head] = token.sequence
        if self._sent is not None and self._all_back:
            self._sent = None
            # Tokens that were handled before news had arrived may have left a sequence out of order.
            has_learned = any(map(self._is_news, self.monitor.figures))
            actions += self._begin(time) if has_learned else self._propose(time)
        return actions

    @property
    def _all_back(self) -> bool:
        """Whether all tokens of the last round are back."""
        return len(self._back) == len(self._sites)

    @property
    def _found(self) -> tuple[HeadPlan, ...]:
        """The sequences that the last round has found."""
        return tuple(self._back[head] for head in range(len(self._sites)))

    def _is_running(self, plans: tuple[HeadPlan, ...]) -> bool:
        running = self._comparison.plan.solution
        return isinstance(running, SequencedSolution) and running.heads == plans

    def _send(self, target: str, token: Token) -> Send:
        return Send(target, replace(token, figures=self.monitor.figures))

    def _propose(self, time: float) -> list[Action]:
        plans, self._proposed = self._found, None
        self._is_in_order = self._is_running(plans)
        if self._is_in_order or not self.monitor.is_complete:
            return []  # The site whose figures are still missing sends tokens when it has some.
        self.monitor.caution = self._comparison.caution(time)
        problem = self._problem()
        best = Deployment("greedy", SequencedSolution(problem, plans, len(plans)))
        proposal = self._comparison.weigh(best, problem, time)
        if proposal is None:
            return []
        self._proposed = time
        return [proposal]

    def _problem(self) -> Problem:
        """The planning problem by the figures known here. Figures that no token has brought are assumed."""
        cached, version = self._cached, self.monitor.version
        if cached is None or cached[0] != version or cached[1] is not self._topology:
            problem = self._comparison.problem(self.monitor.guess(), self._topology)
            cached = self._cached = version, self._topology, problem
        return cached[2]

    def _handle(self, token: Token) -> Token:
        """Take one step with a token whose next stream starts here."""
        try:
            problem = self._problem()
        except PlanningError:
            # A figure is out of range: leave the rest of the sequence as it is.
            return replace(token, position=len(token.sequence.order))
        return self._ask(token, problem) if token.seeking is None else self._seek(token, token.seeking, problem)

    def _seek(self, token: Token, changed: int, problem: Problem) -> Token:
        """Stop at this position if the stream that has changed is now cheaper to probe here, or go on to the next."""
        rows_at, current = _position(problem, token), token.sequence.order[token.position]
        comes_first = current == changed or (
            changed in joinable(problem, rows_at)
            and candidate(problem, rows_at, changed).key < candidate(problem, rows_at, current).key
        )
        if comes_first:
            return replace(token, seeking=None, asked=token.position)
        return replace(token, position=token.position + 1)

    def _ask(self, token: Token, problem: Problem) -> Token:
        """Price probing this stream at the position. After the last stream, put the cheapest one there."""
        order = token.sequence.order
        rows_at, stream = _position(problem, token), order[token.asked]
        cheapest = token.cheapest
        if stream in joinable(problem, rows_at):
            probe = candidate(problem, rows_at, stream)
            key = probe.cost, stream, probe.placement
            cheapest = key if cheapest is None else min(cheapest, key)
        if token.asked + 1 < len(order):
            return replace(token, asked=token.asked + 1, cheapest=cheapest)
        assert cheapest is not None  # One of the streams that are left can always be probed.
        _, best, placement = cheapest
        next_position = token.position + 1
        sequence = _swapped(token.sequence, token.position, best, placement)
        return replace(token, sequence=sequence, position=next_position, asked=next_position, cheapest=None)


def _position(problem: Problem, token: Token) -> Position:
    """Where the rows of the head are, and which streams they have met, before the position of the token."""
    rows_at = Position.start(problem, token.sequence.head)
    for stream in token.sequence.order[: token.position]:
        rows_at = candidate(problem, rows_at, stream).after
    return rows_at


def _swapped(sequence: HeadPlan, position: int, stream: int, placement: int) -> HeadPlan:
    """The sequence in which a later stream and the one at a position have swapped."""
    order, placements = list(sequence.order), list(sequence.placements)
    other = order.index(stream)
    order[position], order[other] = order[other], order[position]
    placements[position] = placement
    return HeadPlan(sequence.head, tuple(order), tuple(placements))
