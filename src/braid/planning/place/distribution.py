"""Distributing operator graphs over processors before anything is known of rates: Round Robin and Grouping."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil

from braid.errors import PlanningError
from braid.model.checks import check


@dataclass(frozen=True, slots=True)
class GraphOperator:
    """An operator that reads streams and other operators, by name."""

    name: str
    inputs: tuple[str, ...]
    kind: str = "join"


@dataclass(frozen=True)
class OperatorGraph:
    """The operators of one query; each name that no operator has is a stream that comes from outside.

    Operators come after those they read.
    """

    operators: tuple[GraphOperator, ...]

    def __post_init__(self) -> None:
        names = [operator.name for operator in self.operators]
        if len(set(names)) != len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise PlanningError(f"two operators are called '{twice}'; rename one of them")
        for number, operator in enumerate(self.operators):
            late = next((name for name in operator.inputs if name in names[number:]), None)
            if late is not None:
                raise PlanningError(f"operator '{operator.name}' reads '{late}', which does not come before it")

    @cached_property
    def by_name(self) -> Mapping[str, GraphOperator]:
        return {operator.name: operator for operator in self.operators}

    @cached_property
    def readers(self) -> Mapping[str, tuple[str, ...]]:
        """Who reads each operator."""
        return {name: tuple(reader.name for reader in self.operators if name in reader.inputs) for name in self.by_name}

    @property
    def leaves(self) -> tuple[str, ...]:
        """The operators that read streams only."""
        return tuple(
            operator.name for operator in self.operators if not any(name in self.by_name for name in operator.inputs)
        )

    def below(self, name: str) -> Iterator[str]:
        """Every operator that an operator reads, directly or through others, nearest first."""
        waiting, seen = list(self.by_name[name].inputs), set()
        while waiting:
            found = waiting.pop(0)
            if found in self.by_name and found not in seen:
                seen.add(found)
                yield found
                waiting += self.by_name[found].inputs

    @property
    def depth(self) -> int:
        depths: dict[str, int] = {}
        for operator in self.operators:
            depths[operator.name] = 1 + max((depths.get(name, 0) for name in operator.inputs), default=0)
        return max(depths.values(), default=0)


Distribution = Mapping[tuple[int, str], int]
"""The processor of each operator, by number of its graph and its name."""
Pattern = Callable[[Sequence[OperatorGraph], int], Distribution]


def round_robin(graphs: Sequence[OperatorGraph], processors: int) -> Distribution:
    """Each operator in turn goes to the processor that has the fewest."""
    _check(processors)
    loads = [0] * processors
    placed: dict[tuple[int, str], int] = {}
    for number, graph in enumerate(graphs):
        for operator in graph.operators:
            chosen = loads.index(min(loads))
            placed[number, operator.name] = chosen
            loads[chosen] += 1
    return placed


def grouping(graphs: Sequence[OperatorGraph], processors: int) -> Distribution:
    """Neighbours together: from a leaf upwards, with what is below each operator as far as it fits.

    A processor that is at least half full is left with room rather than given a piece of what does not fit as a whole.
    """
    _check(processors)
    filling = _Filling(sum(len(graph.operators) for graph in graphs), processors)
    for number, graph in enumerate(graphs):
        for leaf in graph.leaves:
            if (number, leaf) in filling.placed:
                continue
            above = graph.readers[leaf][:1]
            together = [name for top in above for name in (top, *graph.below(top))]
            filling.make_room(sum((number, name) not in filling.placed for name in together or [leaf]))
            filling.put(number, leaf)
            for name in _upwards(graph, leaf):
                if (number, name) in filling.placed or filling.room < 1:
                    break
                missing = [other for other in graph.below(name) if (number, other) not in filling.placed]
                if len(missing) < filling.room:
                    for other in reversed(missing):
                        filling.put(number, other)
                filling.put(number, name)
        for operator in graph.operators:
            if (number, operator.name) not in filling.placed:
                filling.make_room(1)
                filling.put(number, operator.name)
    return filling.placed


class _Filling:
    """Processors being filled one after the other, each with its even share of what is left."""

    def __init__(self, operators: int, processors: int) -> None:
        self.placed: dict[tuple[int, str], int] = {}
        self._operators, self._processors = operators, processors
        self._machine, self._count = 0, 0
        self._share = ceil(operators / processors)

    @property
    def room(self) -> int:
        if self._machine == self._processors - 1:
            return self._operators
        return self._share - self._count

    def make_room(self, needed: int) -> None:
        """Go on to the next processor if this one is full, or half full and too small for what comes."""
        if self.room >= max(needed, 1) or (self.room >= 1 and 2 * self._count < self._share):
            return
        self._machine, self._count = self._machine + 1, 0
        self._share = ceil((self._operators - len(self.placed)) / (self._processors - self._machine))

    def put(self, number: int, name: str) -> None:
        self.placed[number, name] = self._machine
        self._count += 1


def _upwards(graph: OperatorGraph, name: str) -> Iterator[str]:
    while graph.readers[name]:
        name = graph.readers[name][0]
        yield name


def _check(processors: int) -> None:
    check(processors, int, "the number of processors", PlanningError)
    if processors < 1:
        raise PlanningError(f"operators need at least one processor, not {processors}")


def connections(graphs: Sequence[OperatorGraph], placed: Distribution) -> int:
    """How many network connections a distribution takes: streams that come in, and edges between processors."""
    return sum(len(ends) for ends in _connected(graphs, placed))


def connections_of(graphs: Sequence[OperatorGraph], placed: Distribution) -> dict[int, int]:
    """How many connections each processor has to handle; one between two of them counts for both."""
    counts: dict[int, int] = dict.fromkeys(placed.values(), 0)
    for ends in _connected(graphs, placed):
        for end in ends:
            for processor in end:
                counts[processor] += 1
    return counts


def _connected(graphs: Sequence[OperatorGraph], placed: Distribution) -> Iterator[list[set[int]]]:
    for number, graph in enumerate(graphs):
        for operator in graph.operators:
            here = placed[number, operator.name]
            yield [
                {here, placed.get((number, name), here)}
                for name in operator.inputs
                if placed.get((number, name)) != here
            ]


def pieces(graphs: Sequence[OperatorGraph], placed: Distribution) -> int:
    """Into how many pieces that hang together a distribution cuts the graphs."""
    inner = sum(
        placed[number, operator.name] == placed.get((number, name))
        for number, graph in enumerate(graphs)
        for operator in graph.operators
        for name in operator.inputs
    )
    return len(placed) - inner


PATTERNS: dict[str, Pattern] = {"round_robin": round_robin, "grouping": grouping}
