"""The cheapest probe sequence of each head: the optimum that greedy sequences are compared with.

The cost of a step depends on the position before it (the streams joined and the site of the rows), and not on the order
of the steps before. So a dynamic program over positions needs only the cheapest way to each.
"""

from __future__ import annotations

from dataclasses import dataclass

from braid.errors import PlanningError
from braid.planning.order.greedy import joinable, placements
from braid.planning.problem import Problem
from braid.planning.solution.sequenced import HeadPlan, Position, SequencedSolution

Way = tuple[float, tuple[int, ...], tuple[int, ...]]
"""A sequence of steps to a position: its cost, its streams in order, and their placements.

`min` compares the costs first, and breaks ties by the streams.
"""


@dataclass(frozen=True)
class BestSequences:
    """The cheapest probe sequence for each head, among the sequences that `Greedy` chooses from."""

    name: str = "best_sequences"
    largest: int = 12

    def plan(self, problem: Problem) -> SequencedSolution:
        if len(problem.streams) > self.largest:
            raise PlanningError(
                f"{len(problem.streams)} streams have too many sequences to compare; "
                f"the limit is {self.largest}: choose planner 'greedy'"
            )
        heads, considered = [], 0
        for head in range(len(problem.streams)):
            ways: dict[Position, Way] = {Position.start(problem, head): (0.0, (), ())}
            for _ in range(len(problem.streams) - 1):
                ways, compared = _one_step_further(problem, ways)
                considered += compared
            _, order, placed = min(_delivered(problem, at, way) for at, way in ways.items())
            heads.append(HeadPlan(head, order, placed))
        return SequencedSolution(problem, tuple(heads), max(considered, 1))


def _one_step_further(problem: Problem, ways: dict[Position, Way]) -> tuple[dict[Position, Way], int]:
    """The cheapest way to each position one step after the given ones, and the number of steps compared."""
    further: dict[Position, Way] = {}
    compared = 0
    for at, (cost, order, placed) in ways.items():
        for stream in joinable(problem, at):
            for probe in placements(problem, at, stream):
                compared += 1
                way = cost + probe.cost, (*order, stream), (*placed, probe.placement)
                further[probe.after] = min(further.get(probe.after, way), way)
    return further, compared


def _delivered(problem: Problem, at: Position, way: Way) -> Way:
    """The way with the cost of shipping its results to the sink added."""
    if problem.sink is None:
        return way
    problem.deadline.check()
    return way[0] + problem.transport.cost(at.volume(problem), at.site, problem.sink), *way[1:]
