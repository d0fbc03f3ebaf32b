"""Distributed control (DNU of the NOS paper): sites put their probe sequences in order among themselves.

When the figures of a site have moved, it sends a token along the probe sequence of each head. The token brings the
figures of the sites that it has been to. Each site tells what it would cost to probe its own stream next; where a later
stream costs less than the one whose turn it is, the two swap. When all tokens are back, the sequences are those that
greedy planning at one place would find from the same figures.

A site knows of other sites only what tokens bring. No site has to know all, and none is asked by all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from braid.adapt.network.figures import INTAKES, SiteFigures
from braid.adapt.network.messages import Outcome, Send
from braid.adapt.network.monitor import NetworkMonitor
from braid.adapt.network.proposal import Comparison
from braid.errors import PlanningError
from braid.model.network.topology import Topology
from braid.planning.deployment import Deployment
from braid.planning.order.greedy import candidate, joinable
from braid.planning.problem import Problem
from braid.planning.solution.sequenced import HeadPlan, Position, SequencedSolution

PATIENCE = 10.0
"""So many seconds after a site has sent its tokens, it takes those that are not back for lost."""

Cheapest = tuple[float, int, int]
"""The cost of a probe, the stream, and the placement."""


@dataclass(frozen=True)
class Token:
    """A message that puts the probe sequence of one head in order.

    `round` is who has sent it and which of its rounds it belongs to. The positions before `position` are in order. As
    long as it is `seeking` a stream, whose figures have moved, the token goes along the sequence to the first position
    where that stream would now come first. Then it asks the streams from each position on, of which `asked` is the
    next, for the cheapest probe.
    """

    round: tuple[str, int]
    sequence: HeadPlan
    position: int = 0
    asked: int = 0
    seeking: int | None = None
    cheapest: Cheapest | None = None
    figures: tuple[SiteFigures, ...] = ()

    @classmethod
    def along(cls, round: tuple[str, int], sequence: HeadPlan, changed: Sequence[int]) -> Token:
        """A token for a sequence, of which the figures of some streams have changed."""
        can_seek = len(changed) == 1 and changed[0] != sequence.head
        return cls(round, sequence, seeking=changed[0] if can_seek else None)

    @property
    def is_done(self) -> bool:
        return self.position == len(self.sequence.order)

    @property
    def next_stream(self) -> int:
        """The stream whose site has to deal with the token next."""
        return self.sequence.order[self.asked if self.seeking is None else self.position]


class DistributedController:
    """The part of one site, of a query whose plan is a probe sequence for each stream. Other plans it leaves alone.

    `generation` is the one whose plan the comparison begins with, `topology` the network as it is now.
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
        self.monitor.follow(generation)
        self._told: dict[int, SiteFigures] = {}
        """The figures for which the site has sent its last tokens."""
        self._rounds = 0
        self._sent: float | None = None
        """When the tokens of the round that is under way were sent."""
        self._back: dict[int, HeadPlan] = {}
        self._cached: tuple[int, Topology, Problem] | None = None

    @property
    def _own(self) -> list[int]:
        """The streams that start at this site."""
        return [stream for stream, site in enumerate(self._sites) if site == self._site]

    def observe(self, figures: SiteFigures, time: float) -> list[Outcome]:
        self.monitor.hear(figures)
        last = self._told.get(figures.generation)
        has_moved = last is None or figures.differs(last, self._comparison.policy.drift)
        if not has_moved:
            return []
        started = self._begin(time)
        if started is None:
            return []
        self._told[figures.generation] = figures
        return started

    def receive(self, content: Any, time: float) -> list[Outcome]:
        if not isinstance(content, Token):
            return []
        for figures in content.figures:
            self.monitor.hear(figures)
        return self._pass_on([content], time)

    def changed(self, plan: Deployment, generation: int, time: float) -> None:
        self.monitor.follow(generation)
        self._comparison.changed(plan, time)
        self._sent = None

    def rewired(self, topology: Topology, time: float) -> list[Outcome]:
        self._topology = topology
        return self._begin(time) or []

    def gain(self) -> float | None:
        return self._comparison.gain(self.monitor.guess(), self._topology)

    def _begin(self, time: float) -> list[Outcome] | None:
        """Send a token along the sequence of each head; None if that cannot be done now."""
        solution = self._comparison.plan.solution
        is_under_way = self._sent is not None and time - self._sent < PATIENCE
        if is_under_way or not self._own or not isinstance(solution, SequencedSolution):
            return None
        self._rounds += 1
        self._sent, self._back = time, {}
        tokens = [Token.along((self._site, self._rounds), sequence, self._own) for sequence in solution.heads]
        return self._pass_on(tokens, time)

    def _pass_on(self, tokens: Iterable[Token], time: float) -> list[Outcome]:
        """Do what there is to do here with each token, and send it on."""
        outcomes: list[Outcome] = []
        for token in tokens:
            while not token.is_done and self._sites[token.next_stream] == self._site:
                token = self._deal_with(token)
            if not token.is_done:
                outcomes.append(self._send(self._sites[token.next_stream], token))
            elif token.round[0] != self._site:
                outcomes.append(self._send(token.round[0], token))
            elif token.round[1] == self._rounds and self._sent is not None:
                self._back[token.sequence.head] = token.sequence
        if self._sent is not None and len(self._back) == len(self._sites):
            self._sent = None
            outcomes += self._propose(time)
        return outcomes

    def _send(self, target: str, token: Token) -> Send:
        return Send(target, replace(token, figures=self.monitor.figures))

    def _propose(self, time: float) -> list[Outcome]:
        plans = tuple(self._back[head] for head in range(len(self._sites)))
        running = self._comparison.plan.solution
        if isinstance(running, SequencedSolution) and running.heads == plans:
            return []
        self.monitor.caution = self._comparison.caution(time)
        problem = self._problem()
        best = Deployment("greedy", SequencedSolution(problem, plans, len(plans)))
        proposal = self._comparison.weigh(best, problem, time)
        return [] if proposal is None else [proposal]

    def _problem(self) -> Problem:
        """The problem as this site sees it. Of streams that no token has told of it assumes anything."""
        cached, version = self._cached, self.monitor.version
        if cached is None or cached[0] != version or cached[1] is not self._topology:
            problem = self._comparison.problem(self.monitor.guess(), self._topology)
            cached = self._cached = version, self._topology, problem
        return cached[2]

    def _deal_with(self, token: Token) -> Token:
        try:
            problem = self._problem()
        except PlanningError:
            return replace(token, position=len(token.sequence.order))  # A figure is out of range: leave it as it is.
        return self._ask(token, problem) if token.seeking is None else self._seek(token, token.seeking, problem)

    def _seek(self, token: Token, changed: int, problem: Problem) -> Token:
        """Is the stream that has changed now cheaper than the one at this position, which starts here?"""
        at, current = _position(problem, token), token.sequence.order[token.position]
        comes_first = current == changed or (
            changed in joinable(problem, at)
            and candidate(problem, at, changed).key < candidate(problem, at, current).key
        )
        if comes_first:
            return replace(token, seeking=None, asked=token.position)
        return replace(token, position=token.position + 1)

    def _ask(self, token: Token, problem: Problem) -> Token:
        """What would it cost to probe this stream, which starts here, at the position that is being put in order?"""
        order = token.sequence.order
        at, stream = _position(problem, token), order[token.asked]
        cheapest = token.cheapest
        if stream in joinable(problem, at):
            probe = candidate(problem, at, stream)
            key = probe.cost, stream, probe.placement
            cheapest = key if cheapest is None else min(cheapest, key)
        if token.asked + 1 < len(order):
            return replace(token, asked=token.asked + 1, cheapest=cheapest)
        assert cheapest is not None  # One of the streams that are left can always be probed.
        _, best, placement = cheapest
        following = token.position + 1
        sequence = _swapped(token.sequence, token.position, best, placement)
        return replace(token, sequence=sequence, position=following, asked=following, cheapest=None)


def _position(problem: Problem, token: Token) -> Position:
    """Where the rows of the head are before the position that is being put in order."""
    at = Position.start(problem, token.sequence.head)
    for stream in token.sequence.order[: token.position]:
        at = candidate(problem, at, stream).after
    return at


def _swapped(sequence: HeadPlan, position: int, stream: int, placement: int) -> HeadPlan:
    """The sequence with a later stream at a position, and the one from there in its place."""
    order, placements = list(sequence.order), list(sequence.placements)
    other = order.index(stream)
    order[position], order[other] = order[other], order[position]
    placements[position] = placement
    return HeadPlan(sequence.head, tuple(order), tuple(placements))
