"""Greedy probe sequences: each head goes next to the window that costs least, at its source or at its destination.

A step from where the rows are to a window that is elsewhere either brings the window here (its stream is shipped, and
a copy of its window kept) or takes the rows there.
"""

from __future__ import annotations

from dataclasses import dataclass

from braid.planning.problem import Problem
from braid.planning.solution.sequenced import DESTINATION, SOURCE, HeadPlan, Position, SequencedSolution

Key = tuple[float, int]


@dataclass(frozen=True)
class Candidate:
    """A next step of a sequence: which stream, joined where, at what cost."""

    stream: int
    placement: int
    cost: float
    after: Position

    @property
    def key(self) -> Key:
        """Cheapest first; of equals, the first in the order of the query."""
        return self.cost, self.stream


def candidate(problem: Problem, at: Position, stream: int) -> Candidate:
    """The step to a stream, placed where it is cheaper (equations 1 to 3 of the NOS paper)."""
    return min(placements(problem, at, stream), key=lambda step: step.cost)


def placements(problem: Problem, at: Position, stream: int) -> tuple[Candidate, ...]:
    """The step to a stream, where the rows are and, if that is elsewhere, where the stream starts."""
    problem.deadline.check()
    origin, single = problem.origins[stream], 1 << stream
    probing = at.probing(problem, stream)
    here = Position(at.head, at.mask | single, at.site)
    if origin == at.site:
        return (Candidate(stream, SOURCE, probing, here),)
    bring = problem.network.cost(problem.volume(single), origin, at.site) + probing
    go = problem.network.cost(at.volume(problem), at.site, origin) + probing
    there = Position(at.head, at.mask | single, origin)
    return Candidate(stream, SOURCE, bring, here), Candidate(stream, DESTINATION, go, there)


def joinable(problem: Problem, at: Position) -> list[int]:
    """The streams that may come next: those that a condition ties to the ones before, if there are any."""
    rest = [stream for stream in range(len(problem.streams)) if not at.mask >> stream & 1]
    return [stream for stream in rest if problem.tied(at.mask, 1 << stream)] or rest


def cheapest(problem: Problem, at: Position) -> tuple[Candidate, int]:
    """The next step that greedy takes, and how many it is one of."""
    steps = [candidate(problem, at, stream) for stream in joinable(problem, at)]
    return min(steps, key=lambda step: step.key), len(steps)


@dataclass(frozen=True)
class Greedy:
    """One probe sequence for each head, with a place for every step; derived streams of others are not used.

    `considered` counts the steps that were compared.
    """

    name: str = "greedy"

    def plan(self, problem: Problem) -> SequencedSolution:
        heads, considered = [], 0
        for head in range(len(problem.streams)):
            at = Position.start(problem, head)
            order, placements = [], []
            while at.mask != problem.everything:
                step, choices = cheapest(problem, at)
                considered += choices
                order.append(step.stream)
                placements.append(step.placement)
                at = step.after
            heads.append(HeadPlan(head, tuple(order), tuple(placements)))
        return SequencedSolution(problem, tuple(heads), max(considered, 1))
