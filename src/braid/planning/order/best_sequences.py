"""The cheapest probe sequence of each head, by looking at all of them: the yardstick of greedy sequences.

What a step costs depends on which streams are joined already and where the rows are, not on the order in which they
were joined, so that the best way to each such position is enough to go on from.
"""

from __future__ import annotations

from dataclasses import dataclass

from braid.errors import PlanningError
from braid.planning.order.greedy import joinable, placements
from braid.planning.problem import Problem
from braid.planning.solution.sequenced import HeadPlan, Position, SequencedSolution

Way = tuple[float, tuple[int, ...], tuple[int, ...]]
"""The cost of a way to a position, its streams in order and their placements; the first of equals is the least."""


@dataclass(frozen=True)
class BestSequences:
    """One probe sequence for each head, as cheap as can be, among those that greedy chooses from."""

    name: str = "best_sequences"
    largest: int = 12

    def plan(self, problem: Problem) -> SequencedSolution:
        if len(problem.streams) > self.largest:
            raise PlanningError(
                f"the sequences of {len(problem.streams)} streams are too many to look at; "
                f"the limit is {self.largest}: choose planner 'greedy'"
            )
        heads, considered = [], 0
        for head in range(len(problem.streams)):
            reached: dict[Position, Way] = {Position.start(problem, head): (0.0, (), ())}
            for _ in range(len(problem.streams) - 1):
                further: dict[Position, Way] = {}
                for at, (cost, order, places) in reached.items():
                    for stream in joinable(problem, at):
                        for step in placements(problem, at, stream):
                            considered += 1
                            way = cost + step.cost, (*order, stream), (*places, step.placement)
                            further[step.after] = min(further.get(step.after, way), way)
                reached = further
            _, order, places = min(_delivered(problem, at, way) for at, way in reached.items())
            heads.append(HeadPlan(head, order, places))
        return SequencedSolution(problem, tuple(heads), max(considered, 1))


def _delivered(problem: Problem, at: Position, way: Way) -> Way:
    if problem.sink is None:
        return way
    problem.deadline.check()
    return way[0] + problem.network.cost(at.volume(problem), at.site, problem.sink), *way[1:]
