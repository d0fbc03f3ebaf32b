"""From a placed tree to the program of each site, whether or not some of its joins are partitioned."""

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
from braid.planning.partition.parts import PartitionedJoin
from braid.planning.solution.tree import TreeSolution
from braid.planning.stream_names import input_name, separator


def tree_programs(solution: TreeSolution, partitioned: Sequence[PartitionedJoin] = ()) -> dict[str, SiteProgram]:
    """What each site has to do so that the tree runs: keep windows, join, ship on, and emit at the sink.

    A join keeps a window of each input; new rows of one probe the windows of the others. Of a partitioned join each
    part has a tree of its own, with guards where rows of the inputs enter it: they go only where their part is.
    """
    return _Lowering(solution, partitioned).programs()


@dataclass(frozen=True)
class _Input:
    """What a join takes in: a stream, base or derived, that is to be had at a site, and which of its rows."""

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
        self._partitioned = {found.join.merge: (number, found) for number, found in enumerate(partitioned)}
        self._inside = {merge for found in partitioned for merge in found.replaced}
        self._results: dict[Merge, list[_Input]] = {}
        self._instructions: dict[str, list[Instruction]] = defaultdict(list)
        self._arriving: dict[str, list[str]] = defaultdict(list)

    def programs(self) -> dict[str, SiteProgram]:
        tree = self._solution.tree
        for leaf in leaves(tree):
            self._start(leaf)
        for merge in merges(tree):
            if merge in self._partitioned:
                self._join_parts(merge)
            elif merge not in self._inside:
                site = self._solution.placement[merge]
                self._join([self._input(part, site) for part in merge.inputs], site, self._name(merge))
        self._end(tree)
        made = {
            site: SiteProgram(self._query, tuple(instructions), tuple(dict.fromkeys(self._arriving[site])))
            for site, instructions in self._instructions.items()
        }
        check_shipped(made)
        return made

    def _name(self, part: JoinTree) -> str:
        return part.stream if isinstance(part, Leaf) else self._joined(part.streams)

    def _joined(self, streams: frozenset[str]) -> str:
        return self._plus.join(alias for alias in self._query.aliases if alias in streams)

    def _start(self, leaf: Leaf | Reused) -> None:
        site = self._solution.site(leaf)
        if isinstance(leaf, Reused):
            match = self._solution.offer(leaf).match
            self._instructions[site].append(Reuse(match.advertisement, match.names, self._name(leaf)))
            if match.narrowed:
                self._instructions[site].append(Narrow(self._name(leaf), match.narrowed))
            checked = match.remaining
        else:
            checked = self._query.graph.selections_of(leaf.stream)
        self._instructions[site] += [Filter(self._name(leaf), predicate) for predicate in checked]

    def _end(self, tree: JoinTree) -> None:
        """Results are emitted at the sink, or where they are if nobody has asked for them anywhere else."""
        sink = self._solution.problem.sink
        target = None if sink is None else self._solution.problem.topology.names[sink]
        if target is None and isinstance(tree, Merge) and tree in self._results:
            ends = self._results[tree]
        else:
            end = self._input(tree, target or self._solution.site(tree))
            ends = [self._bring(end, target or end.site)]
        for end in ends:
            self._instructions[end.site] += finish(self._query, end.name)

    def _input(self, part: JoinTree, target: str, guard: Guard = ALWAYS) -> _Input:
        """A part of the tree as an input; what comes out of a partitioned join is put together where it is wanted."""
        derived = not isinstance(part, Leaf)
        if isinstance(part, Merge) and part in self._results:
            brought = [self._bring(result, target).name for result in self._results[part]]
            self._instructions[target].append(Union(tuple(brought), self._name(part)))
            return _Input(self._name(part), part.streams, target, derived, guard)
        return _Input(self._name(part), part.streams, self._solution.site(part), derived, guard)

    def _bring(self, given: _Input, target: str) -> _Input:
        if given.site == target:
            return given
        self._instructions[given.site].append(Ship(given.name, target, given.guard))
        if given.derived:
            self._arriving[target].append(given.name)
        return _Input(given.name, given.streams, target, given.derived, given.guard)

    def _join_parts(self, merge: Merge) -> None:
        number, found = self._partitioned[merge]
        outer = {input_name(self._query, part): part for part in found.join.inputs}
        self._results[merge] = []
        for place, (part, guard) in enumerate(zip(found.parts, found.guards, strict=True)):
            prefix = f"{number}.{place}{self._colon}"
            made: dict[Merge, _Input] = {}
            for inner in merges(part.solution.tree):
                site = part.solution.placement[inner]
                inputs = [
                    made[below] if isinstance(below, Merge) else self._input(outer[str(below)], site, guard)
                    for below in inner.inputs
                ]
                streams = frozenset[str]().union(*(below.streams for below in inputs))
                name = prefix + self._joined(streams)
                self._join(inputs, site, name, prefix)
                made[inner] = _Input(name, streams, site, derived=True)
            assert isinstance(part.solution.tree, Merge)
            self._results[merge].append(made[part.solution.tree])

    def _join(self, inputs: Sequence[_Input], site: str, result: str, prefix: str = "") -> None:
        inputs = [self._bring(given, site) for given in inputs]
        for given in inputs:
            # Parts at the same site share a window: rows of different parts never match.
            if Update(given.name) not in self._instructions[site]:
                self._instructions[site].append(Update(given.name))
        chains = [list(self._chain(inputs, head, prefix)) for head in inputs]
        self._instructions[site] += [join for chain in chains for join in chain]
        self._instructions[site].append(Union(tuple(chain[-1].result for chain in chains), result))

    def _chain(self, inputs: Sequence[_Input], head: _Input, prefix: str) -> Iterator[Join]:
        """New rows of one input probe the windows of the others."""
        probe, bound, guard = head.name, head.streams, head.guard
        for part in probe_order(self._query, inputs, head):
            result = f"{'' if probe.startswith(prefix) else prefix}{probe}{self._arrow}{part.name}"
            yield Join(probe, part.name, result, *self._query.graph.between(bound, part.streams), guard)
            probe, bound, guard = result, bound | part.streams, ALWAYS
