"""Distributing operator graphs over processors before any rate is known: Round Robin and Grouping (D-CAPE)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil

from braid.errors import PlanningError
from braid.model.checks import check


@dataclass(frozen=True, slots=True)
class GraphOperator:
    """An operator, and the names of the streams and operators it reads."""

    name: str
    inputs: tuple[str, ...]
    kind: str = "join"


@dataclass(frozen=True)
class OperatorGraph:
    """The operators of one query, each after the operators it reads.

    An input that is not the name of an operator is a stream from outside.
    """

    operators: tuple[GraphOperator, ...]

    def __post_init__(self) -> None:
        names = [operator.name for operator in self.operators]
        if len(set(names)) != len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise PlanningError(f"two operators are called '{twice}'; rename one of them")
        for position, operator in enumerate(self.operators):
            later = next((name for name in operator.inputs if name in names[position:]), None)
            if later is not None:
                raise PlanningError(f"operator '{operator.name}' reads '{later}', which does not come before it")

    @cached_property
    def by_name(self) -> Mapping[str, GraphOperator]:
        return {operator.name: operator for operator in self.operators}

    @cached_property
    def readers(self) -> Mapping[str, tuple[str, ...]]:
        """The operators that read each operator."""
        return {name: tuple(reader.name for reader in self.operators if name in reader.inputs) for name in self.by_name}

    @property
    def leaves(self) -> tuple[str, ...]:
        """The operators that read only streams."""
        return tuple(
            operator.name for operator in self.operators if not any(name in self.by_name for name in operator.inputs)
        )

    def below(self, name: str) -> Iterator[str]:
        """Every operator that an operator reads, directly or through others, nearest first."""
        waiting, seen = list(self.by_name[name].inputs), set()
        while waiting:
            read = waiting.pop(0)
            if read in self.by_name and read not in seen:
                seen.add(read)
                yield read
                waiting += self.by_name[read].inputs

    @property
    def depth(self) -> int:
        """The number of operators on the longest path."""
        depths: dict[str, int] = {}
        for operator in self.operators:
            depths[operator.name] = 1 + max((depths.get(name, 0) for name in operator.inputs), default=0)
        return max(depths.values(), default=0)


Distribution = Mapping[tuple[int, str], int]
"""The processor of each operator, by the number of its graph and its name."""
Pattern = Callable[[Sequence[OperatorGraph], int], Distribution]
"""A way to distribute the operators of some graphs over a number of processors."""


def round_robin(graphs: Sequence[OperatorGraph], processors: int) -> Distribution:
    """Each operator in turn is placed on the processor with the fewest operators."""
    _check(processors)
    loads = [0] * processors
    placed: dict[tuple[int, str], int] = {}
    for graph_number, graph in enumerate(graphs):
        for operator in graph.operators:
            chosen = loads.index(min(loads))
            placed[graph_number, operator.name] = chosen
            loads[chosen] += 1
    return placed


def grouping(graphs: Sequence[OperatorGraph], processors: int) -> Distribution:
    """Keep neighbours together: go from a leaf upwards, and place each operator with all those below it, if they fit.

    If the next group does not fit on a processor that is at least half full, the group goes to the next processor.
    """
    _check(processors)
    filling = _Filling(sum(len(graph.operators) for graph in graphs), processors)
    for graph_number, graph in enumerate(graphs):
        for leaf in graph.leaves:
            if (graph_number, leaf) not in filling.placed:
                _place_from_leaf(filling, graph_number, graph, leaf)
        for operator in graph.operators:
            if (graph_number, operator.name) not in filling.placed:
                filling.make_room(1)
                filling.put(graph_number, operator.name)
    return filling.placed


def _place_from_leaf(filling: _Filling, graph_number: int, graph: OperatorGraph, leaf: str) -> None:
    """Place a leaf and the operators above it, each with all operators below it, until the processor is full."""
    group = [leaf]
    if graph.readers[leaf]:
        reader = graph.readers[leaf][0]
        group = [reader, *graph.below(reader)]
    filling.make_room(sum((graph_number, name) not in filling.placed for name in group))
    filling.put(graph_number, leaf)
    for name in _upwards(graph, leaf):
        if (graph_number, name) in filling.placed or filling.room < 1:
            return
        missing = [other for other in graph.below(name) if (graph_number, other) not in filling.placed]
        if len(missing) < filling.room:
            for other in reversed(missing):
                filling.put(graph_number, other)
        filling.put(graph_number, name)


class _Filling:
    """Fills processors one after the other, each with an even share of the operators that are left."""

    def __init__(self, operators: int, processors: int) -> None:
        self.placed: dict[tuple[int, str], int] = {}
        self._operators, self._processors = operators, processors
        self._processor, self._count = 0, 0  # The processor being filled, and its operators so far.
        self._share = ceil(operators / processors)

    @property
    def room(self) -> int:
        """How many more operators the current processor takes; the last one takes all that are left."""
        if self._processor == self._processors - 1:
            return self._operators
        return self._share - self._count

    def make_room(self, needed: int) -> None:
        """Go to the next processor if this one is full, or if it is half full and lacks room for the next group."""
        if self.room >= max(needed, 1) or (self.room >= 1 and 2 * self._count < self._share):
            return
        self._processor, self._count = self._processor + 1, 0
        self._share = ceil((self._operators - len(self.placed)) / (self._processors - self._processor))

    def put(self, graph_number: int, name: str) -> None:
        self.placed[graph_number, name] = self._processor
        self._count += 1


def _upwards(graph: OperatorGraph, name: str) -> Iterator[str]:
    """The first reader of an operator, the first reader of that one, and so on up to the root."""
    while graph.readers[name]:
        name = graph.readers[name][0]
        yield name


def _check(processors: int) -> None:
    check(processors, int, "the number of processors", PlanningError)
    if processors < 1:
        raise PlanningError(f"operators need at least one processor, not {processors}")


def connections(graphs: Sequence[OperatorGraph], placed: Distribution) -> int:
    """The number of network connections of a distribution: streams from outside, and edges between processors."""
    return len(list(_connected(graphs, placed)))


def connections_of(graphs: Sequence[OperatorGraph], placed: Distribution) -> dict[int, int]:
    """The number of connections of each processor; a connection between two processors counts for both."""
    counts: dict[int, int] = dict.fromkeys(placed.values(), 0)
    for processors in _connected(graphs, placed):
        for processor in processors:
            counts[processor] += 1
    return counts


def _connected(graphs: Sequence[OperatorGraph], placed: Distribution) -> Iterator[set[int]]:
    """The processors at the ends of each connection: two, or one for a stream from outside."""
    for graph_number, graph in enumerate(graphs):
        for operator in graph.operators:
            processor = placed[graph_number, operator.name]
            for name in operator.inputs:
                sender = placed.get((graph_number, name))
                if sender != processor:
                    yield {processor} if sender is None else {processor, sender}


def pieces(graphs: Sequence[OperatorGraph], placed: Distribution) -> int:
    """The number of connected pieces into which a distribution cuts the graphs."""
    inner = sum(
        placed[graph_number, operator.name] == placed.get((graph_number, name))
        for graph_number, graph in enumerate(graphs)
        for operator in graph.operators
        for name in operator.inputs
    )
    return len(placed) - inner


PATTERNS: dict[str, Pattern] = {"round_robin": round_robin, "grouping": grouping}
