"""From a placed tree to the program of each site. Some joins of the tree may be partitioned."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from braid.model.program import (
    ALWAYS,
    Filter,
    Guard,
    Instruction,
    Join,
    Narrow,
    Reuse,
    Ship,
    SiteProgram,
    Union,
    Update,
)
from braid.model.query import Query
from braid.model.tree import JoinTree, Leaf, Merge, Reused, leaves, merges, probe_order
from braid.planning.lowering.checks import check_shipped
from braid.planning.lowering.emitting import finish
from braid.planning.partition.parts import Part, PartitionedJoin
from braid.planning.solution.tree import TreeSolution
from braid.planning.stream_names import input_name, separator


def tree_programs(solution: TreeSolution, partitioned: Sequence[PartitionedJoin] = ()) -> dict[str, SiteProgram]:
    """The program of each site of a placed tree: keep windows, join, ship results, and emit them at the sink.

    A join keeps a window of each input, and new rows of one input probe the windows of the others. Each part of a
    partitioned join has its own tree. Guards let a row of an input enter only the tree of the part it belongs to.
    """
    return _Lowering(solution, partitioned).programs()


@dataclass(frozen=True)
class _Input:
    """An input of a join: a base or derived stream at a site. Only rows that pass the guard are used."""

    name: str
    streams: frozenset[str]
    site: str
    derived: bool
    guard: Guard = ALWAYS


class _Lowering:
    def __init__(self, solution: TreeSolution, partitioned: Sequence[PartitionedJoin]) -> None:
        self._solution = solution
        self._query: Query = solution.problem.query
        self._plus, self._arrow, self._colon = (separator(self._query, sign) for sign in "+>:")
        self._partitioned = {join.join.merge: (join_number, join) for join_number, join in enumerate(partitioned)}
        # Joins of the whole tree that the trees of parts replace.
        self._replaced = {merge for join in partitioned for merge in join.replaced}
        # The results of the parts of each partitioned join.
        self._results: dict[Merge, list[_Input]] = {}
        self._instructions: dict[str, list[Instruction]] = defaultdict(list)
        # The derived streams that other sites ship to each site.
        self._arriving: dict[str, list[str]] = defaultdict(list)

    def programs(self) -> dict[str, SiteProgram]:
        tree = self._solution.tree
        for leaf in leaves(tree):
            self._start(leaf)
        for merge in merges(tree):
            if merge in self._partitioned:
                self._join_parts(merge)
            elif merge not in self._replaced:
                site = self._solution.placement[merge]
                self._join([self._input(subtree, site) for subtree in merge.inputs], site, self._name(merge))
        self._end(tree)
        programs = {
            site: SiteProgram(self._query, tuple(instructions), tuple(dict.fromkeys(self._arriving[site])))
            for site, instructions in self._instructions.items()
        }
        check_shipped(programs)
        return programs

    def _name(self, subtree: JoinTree) -> str:
        return subtree.stream if isinstance(subtree, Leaf) else self._joined_name(subtree.streams)

    def _joined_name(self, streams: frozenset[str]) -> str:
        return self._plus.join(alias for alias in self._query.aliases if alias in streams)

    def _start(self, leaf: Leaf | Reused) -> None:
        """Read a stream or a reused derived stream at its site, and filter it."""
        site = self._solution.site(leaf)
        if isinstance(leaf, Reused):
            match = self._solution.offer(leaf).match
            self._instructions[site].append(Reuse(match.advertisement, match.names, self._name(leaf)))
            if match.narrowed:
                self._instructions[site].append(Narrow(self._name(leaf), match.narrowed))
            predicates = match.remaining
        else:
            predicates = self._query.graph.selections_of(leaf.stream)
        self._instructions[site] += [Filter(self._name(leaf), predicate) for predicate in predicates]

    def _end(self, tree: JoinTree) -> None:
        """Emit the results at the sink, or without a sink at the sites that make them."""
        sink = self._solution.problem.sink
        target = None if sink is None else self._solution.problem.topology.names[sink]
        if target is None and isinstance(tree, Merge) and tree in self._results:
            ends = self._results[tree]
        else:
            end = self._input(tree, target or self._solution.site(tree))
            ends = [self._ship(end, target or end.site)]
        for end in ends:
            self._instructions[end.site] += finish(self._query, end.name)

    def _input(self, subtree: JoinTree, target: str, guard: Guard = ALWAYS) -> _Input:
        """The result of a subtree as an input; the results of a partitioned join are united at the target."""
        derived = not isinstance(subtree, Leaf)
        name = self._name(subtree)
        if isinstance(subtree, Merge) and subtree in self._results:
            shipped = [self._ship(result, target).name for result in self._results[subtree]]
            self._instructions[target].append(Union(tuple(shipped), name))
            return _Input(name, subtree.streams, target, derived, guard)
        return _Input(name, subtree.streams, self._solution.site(subtree), derived, guard)

    def _ship(self, stream: _Input, target: str) -> _Input:
        """Ship an input to the target, unless it is there already."""
        if stream.site == target:
            return stream
        self._instructions[stream.site].append(Ship(stream.name, target, stream.guard))
        if stream.derived:
            self._arriving[target].append(stream.name)
        return _Input(stream.name, stream.streams, target, stream.derived, stream.guard)

    def _join_parts(self, merge: Merge) -> None:
        """Add the joins of all parts of a partitioned join."""
        join_number, partitioned = self._partitioned[merge]
        self._results[merge] = []
        for label, (part, guard) in enumerate(zip(partitioned.parts, partitioned.guards, strict=True)):
            prefix = f"{join_number}.{label}{self._colon}"
            self._results[merge].append(self._join_part(partitioned, part, guard, prefix))

    def _join_part(self, partitioned: PartitionedJoin, part: Part, guard: Guard, prefix: str) -> _Input:
        """Add the joins of one part, and return its result."""
        outer = {input_name(self._query, subtree): subtree for subtree in partitioned.join.inputs}
        results: dict[Merge, _Input] = {}
        for inner in merges(part.solution.tree):
            site = part.solution.placement[inner]
            inputs = [
                results[below] if isinstance(below, Merge) else self._input(outer[str(below)], site, guard)
                for below in inner.inputs
            ]
            streams = frozenset[str]().union(*(stream.streams for stream in inputs))
            name = prefix + self._joined_name(streams)
            self._join(inputs, site, name, prefix)
            results[inner] = _Input(name, streams, site, derived=True)
        assert isinstance(part.solution.tree, Merge)
        return results[part.solution.tree]

    def _join(self, inputs: Sequence[_Input], site: str, result: str, prefix: str = "") -> None:
        """Join some inputs at a site: keep their windows, and let new rows of each probe the others."""
        inputs = [self._ship(stream, site) for stream in inputs]
        for stream in inputs:
            # Parts at the same site share a window: rows of different parts never match.
            if Update(stream.name) not in self._instructions[site]:
                self._instructions[site].append(Update(stream.name))
        chains = [list(self._chain(inputs, head, prefix)) for head in inputs]
        self._instructions[site] += [join for chain in chains for join in chain]
        self._instructions[site].append(Union(tuple(chain[-1].result for chain in chains), result))

    def _chain(self, inputs: Sequence[_Input], head: _Input, prefix: str) -> Iterator[Join]:
        """New rows of one input probe the windows of the others."""
        probe, bound, guard = head.name, head.streams, head.guard
        for other in probe_order(self._query, inputs, head):
            result = f"{'' if probe.startswith(prefix) else prefix}{probe}{self._arrow}{other.name}"
            yield Join(probe, other.name, result, *self._query.graph.between(bound, other.streams), guard)
            # The guard stops other rows at the first join, so the joins after it need none.
            probe, bound, guard = result, bound | other.streams, ALWAYS
