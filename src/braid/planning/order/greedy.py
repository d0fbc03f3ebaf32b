"""Greedy probe sequences: the rows of each head always probe next the window that costs least.

If the probed stream starts at another site, either the stream is shipped to the rows, where a copy of its window is
kept (`SOURCE`), or the rows are shipped to the site of the stream (`DESTINATION`).
"""

from __future__ import annotations

from dataclasses import dataclass

from braid.planning.problem import Problem
from braid.planning.solution.sequenced import DESTINATION, SOURCE, HeadPlan, Position, SequencedSolution


@dataclass(frozen=True)
class Candidate:
    """A possible next probe of a sequence: the probed stream, the placement, the cost, and the position afterwards."""

    stream: int
    placement: int
    cost: float
    after: Position

    @property
    def key(self) -> tuple[float, int]:
        """Candidates compare by cost; equal costs by the order of the streams in the query."""
        return self.cost, self.stream


def candidate(problem: Problem, at: Position, stream: int) -> Candidate:
    """The probe of a stream, with the cheaper placement (equations 1 to 3 of the NOS paper)."""
    return min(placements(problem, at, stream), key=lambda probe: probe.cost)


def placements(problem: Problem, at: Position, stream: int) -> tuple[Candidate, ...]:
    """The probe of a stream, with each placement. There is one placement if the stream starts at this site."""
    problem.deadline.check()
    origin, single = problem.origins[stream], 1 << stream
    probing = at.probing(problem, stream)
    here = Position(at.head, at.mask | single, at.site)
    if origin == at.site:
        return (Candidate(stream, SOURCE, probing, here),)
    ship_stream = problem.transport.cost(problem.volume(single), origin, at.site)
    ship_rows = problem.transport.cost(at.volume(problem), at.site, origin)
    there = Position(at.head, at.mask | single, origin)
    return (
        Candidate(stream, SOURCE, ship_stream + probing, here),
        Candidate(stream, DESTINATION, ship_rows + probing, there),
    )


def joinable(problem: Problem, at: Position) -> list[int]:
    """The streams that may be probed next: those tied to the joined ones by a condition, or all if there are none."""
    rest = [stream for stream in range(len(problem.streams)) if not at.mask >> stream & 1]
    return [stream for stream in rest if problem.tied(at.mask, 1 << stream)] or rest


def cheapest(problem: Problem, at: Position) -> tuple[Candidate, int]:
    """The cheapest next probe, and the number of probes it was chosen from."""
    probes = [candidate(problem, at, stream) for stream in joinable(problem, at)]
    return min(probes, key=lambda probe: probe.key), len(probes)


@dataclass(frozen=True)
class Greedy:
    """One probe sequence for each head, with a site for every probe. Derived streams of other queries are not used.

    `considered` counts the probes that were compared.
    """

    name: str = "greedy"

    def plan(self, problem: Problem) -> SequencedSolution:
        heads, considered = [], 0
        for head in range(len(problem.streams)):
            at = Position.start(problem, head)
            order, placements = [], []
            while at.mask != problem.everything:
                probe, choices = cheapest(problem, at)
                considered += choices
                order.append(probe.stream)
                placements.append(probe.placement)
                at = probe.after
            heads.append(HeadPlan(head, tuple(order), tuple(placements)))
        return SequencedSolution(problem, tuple(heads), max(considered, 1))
