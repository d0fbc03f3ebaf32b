"""Updating greedy sequences after the figures of one stream have changed: at a center, or among the nodes themselves.

Both ways end with the plan that greedy makes from the new figures. They differ in the messages they need.
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
    """The new sequences, and the messages between nodes that the update took.

    `modification` messages find and distribute the new plan. `windows` counts the windows that are copied to nodes that
    did not keep them before. `synchronization` messages switch the nodes to the new plan together (in two phases, from
    each node concerned to each other).
    """

    plans: Plans
    modification: int
    windows: int
    synchronization: int

    @property
    def migration(self) -> int:
        return self.windows + self.synchronization


def update_centrally(problem: Problem, plans: Plans) -> Changed:
    """One node reports the change; a center plans again and sends new operators to each node whose operators differ."""
    new = Greedy().plan(problem).heads
    before, after = _union(problem, plans), _union(problem, new)
    affected = [site for site in {*before, *after} if set(before.get(site, {})) != set(after.get(site, {}))]
    if not affected:
        return Changed(new, 1, 0, 0)
    nodes = len(set(problem.origins))
    # The center is one of the nodes, and sends itself no message.
    return Changed(new, 1 + min(len(affected), nodes - 1), _moved(before, after), 2 * nodes * (nodes - 1))


def update_among_nodes(problem: Problem, plans: Plans, stream: int) -> Changed:
    """The node of the changed stream starts; the nodes sort each sequence again by swapping steps."""
    messages, rounds, windows = 0, 0, 0
    new: list[HeadPlan] = []
    for plan in plans:
        sorting = _Sorting(problem, plan)
        sorting.run(stream)
        new.append(sorting.plan())
        messages += sorting.messages
        rounds += sorting.rounds
        windows += sorting.windows
    # The two nodes of each swap or change of placement agree on it in two phases, with one message each way.
    return Changed(tuple(new), messages, windows, 4 * rounds)


class _Sorting:
    """One sequence while the nodes sort it, and the messages they need."""

    def __init__(self, problem: Problem, plan: HeadPlan) -> None:
        self._problem, self._head = problem, plan.head
        self._order, self._placements = list(plan.order), list(plan.placements)
        self.messages = self.rounds = self.windows = 0

    def plan(self) -> HeadPlan:
        return HeadPlan(self._head, tuple(self._order), tuple(self._placements))

    def run(self, stream: int) -> None:
        start = 0 if stream == self._head else self._first(stream)
        for index in range(start, len(self._order)):
            self._settle(index)

    def _positions(self) -> list[Position]:
        """The position of the rows before each probe, and after the last, with the cheapest placements."""
        positions = [Position.start(self._problem, self._head)]
        for stream in self._order:
            positions.append(candidate(self._problem, positions[-1], stream).after)
        return positions

    def _first(self, stream: int) -> int:
        """The first position that may have to change: that of the stream, or an earlier one where it is now cheaper."""
        positions, current = self._positions(), self._order.index(stream)
        for index in range(current):
            self.messages += 1
            at = positions[index]
            if stream in joinable(self._problem, at):
                planned = candidate(self._problem, at, self._order[index])
                if candidate(self._problem, at, stream).key < planned.key:
                    return index
        return current

    def _settle(self, index: int) -> None:
        """Ask the nodes of all later probes for their cost at this position, and swap with the cheapest."""
        problem, at = self._problem, self._positions()[index]
        self.messages += len(self._order) - index - 1
        best, _ = cheapest(problem, at)
        before = head_operators(problem, self.plan())
        swapped = best.stream != self._order[index]
        if swapped:
            other = self._order.index(best.stream)
            self._order[index], self._order[other] = self._order[other], self._order[index]
            # The last node asked tells the cheapest one (1 message), both exchange their operators (2 messages), and
            # tell their neighbours in the sequence (1 message each).
            around = {index - 1, index + 1, other - 1, other + 1} - {index, other}
            neighbours = around & set(range(len(self._order)))
            self.messages += 1 + 2 + len(neighbours)
        moved = best.placement != self._placements[index]
        self._placements[index] = best.placement
        if moved:
            self.messages += 1
        if swapped or moved:
            self.rounds += int(swapped) + int(moved)
            self.windows += _moved(before, head_operators(problem, self.plan()))


def _union(problem: Problem, plans: Plans) -> Operators:
    """The operators of all heads together."""
    union: Operators = {}
    for plan in plans:
        for site, instructions in head_operators(problem, plan).items():
            union.setdefault(site, {}).update(instructions)
    return union


def _moved(before: Operators, after: Operators) -> int:
    """The number of windows that must be copied to nodes that do not keep them yet."""

    def windows(operators: Operators) -> set[tuple[str, str]]:
        kept_at: set[tuple[str, str]] = set()
        for site, instructions in operators.items():
            updates = (instruction for instruction in instructions if isinstance(instruction, Update))
            kept_at.update((site, update.stream) for update in updates)
        return kept_at

    return len(windows(after) - windows(before))
