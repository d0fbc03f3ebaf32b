"""Changing greedy sequences after the figures of one stream have changed: at a center, or among the nodes themselves.

Both end with the same plan, the one that greedy makes from the new figures; they differ in who talks to whom.
"""

from __future__ import annotations

from dataclasses import dataclass

from braid.model.program import Update
from braid.planning.lowering.sequences import Operators, head_operators
from braid.planning.order.greedy import Greedy, candidate, cheapest, joinable
from braid.planning.problem import Problem
from braid.planning.solution.sequenced import HeadPlan, Position

Plans = tuple[HeadPlan, ...]


@dataclass(frozen=True, slots=True)
class Changed:
    """New sequences, and what it took to get there, in messages between nodes.

    `modification` messages find and spread the new plan; `windows` are copies that nodes ask for because they need a
    window they did not have; `synchronization` messages switch the nodes over together (two phases, all to all among
    those concerned).
    """

    plans: Plans
    modification: int
    windows: int
    synchronization: int

    @property
    def migration(self) -> int:
        return self.windows + self.synchronization


def update_centrally(problem: Problem, plans: Plans) -> Changed:
    """One node reports, a center plans anew and sends a new operator set to each node whose set has changed."""
    new = Greedy().plan(problem).heads
    before, after = _union(problem, plans), _union(problem, new)
    affected = [site for site in {*before, *after} if set(before.get(site, {})) != set(after.get(site, {}))]
    if not affected:
        return Changed(new, 1, 0, 0)
    nodes = len(set(problem.origins))
    # The center is one of the nodes: it tells itself nothing.
    return Changed(new, 1 + min(len(affected), nodes - 1), _moved(before, after), 2 * nodes * (nodes - 1))


def update_among_nodes(problem: Problem, plans: Plans, stream: int) -> Changed:
    """The node of the changed stream starts; each sequence is put in order again by swaps between nodes."""
    messages, rounds, windows = 0, 0, 0
    new: list[HeadPlan] = []
    for plan in plans:
        settled = _Resettling(problem, plan)
        settled.run(stream)
        new.append(settled.plan())
        messages += settled.messages
        rounds += settled.rounds
        windows += settled.windows
    # Each swap or change of place is agreed between the two nodes it concerns: two phases, one message each way.
    return Changed(tuple(new), messages, windows, 4 * rounds)


class _Resettling:
    """One sequence, while the nodes put it in order."""

    def __init__(self, problem: Problem, plan: HeadPlan) -> None:
        self._problem, self._head = problem, plan.head
        self._order, self._places = list(plan.order), list(plan.placements)
        self.messages = self.rounds = self.windows = 0

    def plan(self) -> HeadPlan:
        return HeadPlan(self._head, tuple(self._order), tuple(self._places))

    def run(self, stream: int) -> None:
        start = 0 if stream == self._head else self._first(stream)
        for place in range(start, len(self._order)):
            self._settle(place)

    def _positions(self) -> list[Position]:
        """Where the rows are before each step, as now placed."""
        positions = [Position.start(self._problem, self._head)]
        for stream in self._order:
            positions.append(candidate(self._problem, positions[-1], stream).after)
        return positions

    def _first(self, stream: int) -> int:
        """The first step that may have to change: where the stream is now, or earlier if it has become cheaper."""
        positions, now = self._positions(), self._order.index(stream)
        for place in range(now):
            self.messages += 1
            if stream in joinable(self._problem, positions[place]):
                ours = candidate(self._problem, positions[place], stream)
                if ours.key < candidate(self._problem, positions[place], self._order[place]).key:
                    return place
        return now

    def _settle(self, place: int) -> None:
        """Ask the nodes further on, one after the other, who is cheapest for this step; swap with it."""
        problem, at = self._problem, self._positions()[place]
        self.messages += len(self._order) - place - 1
        best, _ = cheapest(problem, at)
        before = head_operators(problem, self.plan())
        swapped = best.stream != self._order[place]
        if swapped:
            other = self._order.index(best.stream)
            self._order[place], self._order[other] = self._order[other], self._order[place]
            # The last node tells the winner, both exchange their sets and tell their neighbours in the sequence.
            neighbours = {place - 1, place + 1, other - 1, other + 1} & set(range(len(self._order))) - {place, other}
            self.messages += 1 + 2 + len(neighbours)
        moved = best.placement != self._places[place]
        self._places[place] = best.placement
        if moved:
            self.messages += 1
        if swapped or moved:
            self.rounds += int(swapped) + int(moved)
            self.windows += _moved(before, head_operators(problem, self.plan()))


def _union(problem: Problem, plans: Plans) -> Operators:
    joined: Operators = {}
    for plan in plans:
        for site, instructions in head_operators(problem, plan).items():
            joined.setdefault(site, {}).update(instructions)
    return joined


def _moved(before: Operators, after: Operators) -> int:
    """How many windows must be copied to nodes that do not keep them yet."""

    def kept(operators: Operators) -> set[tuple[str, str]]:
        return {(site, step.stream) for site, steps in operators.items() for step in steps if isinstance(step, Update)}

    return len(kept(after) - kept(before))
