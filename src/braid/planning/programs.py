"""From a placed tree to the program of each site."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from braid.model.program import Emit, Filter, Instruction, Join, Project, Ship, SiteProgram, Union, Update
from braid.model.query import Output, Query
from braid.model.tree import JoinTree, Leaf, Merge, Reused, leaves, merges
from braid.planning.solution import TreeSolution

RESULT = "result"


def tree_programs(solution: TreeSolution) -> dict[str, SiteProgram]:
    """What each site has to do so that the tree runs: keep windows, join, ship on, and emit at the sink.

    A join keeps a window of each input; new rows of one probe the windows of the others.
    """
    return _Lowering(solution).programs()


class _Lowering:
    def __init__(self, solution: TreeSolution) -> None:
        self._solution = solution
        self._query: Query = solution.problem.query
        self._instructions: dict[str, list[Instruction]] = defaultdict(list)
        self._arriving: dict[str, list[str]] = defaultdict(list)

    def programs(self) -> dict[str, SiteProgram]:
        solution = self._solution
        for leaf in leaves(solution.tree):
            self._start(leaf)
        for merge in merges(solution.tree):
            self._join(merge, solution.placement[merge])
        sink = solution.problem.sink
        end = solution.site(solution.tree) if sink is None else solution.problem.topology.names[sink]
        self._send(solution.tree, end)
        self._instructions[end] += self._finish()
        return {
            site: SiteProgram(self._query, tuple(instructions), tuple(dict.fromkeys(self._arriving[site])))
            for site, instructions in self._instructions.items()
        }

    def _name(self, part: JoinTree) -> str:
        return part.stream if isinstance(part, Leaf) else "+".join(a for a in self._query.aliases if a in part.streams)

    def _start(self, leaf: Leaf | Reused) -> None:
        site = self._solution.site(leaf)
        if isinstance(leaf, Reused):
            self._arriving[site].append(self._name(leaf))
            checked = self._solution.offer(leaf).match.remaining
        else:
            checked = self._query.graph.selections_of(leaf.stream)
        self._instructions[site] += [Filter(self._name(leaf), predicate) for predicate in checked]

    def _send(self, part: JoinTree, target: str) -> None:
        source = self._solution.site(part)
        if source != target:
            self._instructions[source].append(Ship(self._name(part), target))
            if not isinstance(part, Leaf):
                self._arriving[target].append(self._name(part))

    def _join(self, merge: Merge, site: str) -> None:
        for part in merge.inputs:
            self._send(part, site)
        self._instructions[site] += [Update(self._name(part)) for part in merge.inputs]
        chains = [list(self._chain(merge, head)) for head in merge.inputs]
        self._instructions[site] += [join for chain in chains for join in chain]
        self._instructions[site].append(Union(tuple(chain[-1].result for chain in chains), self._name(merge)))

    def _chain(self, merge: Merge, head: JoinTree) -> Iterator[Join]:
        """New rows of one input probe the windows of the others."""
        probe, bound = self._name(head), head.streams
        for part in merge.inputs:
            if part is not head:
                result = f"{probe}>{self._name(part)}"
                yield Join(probe, self._name(part), result, *self._query.graph.between(bound, part.streams))
                probe, bound = result, bound | part.streams

    def _finish(self) -> Iterator[Instruction]:
        name = self._name(self._solution.tree)
        outputs = tuple(output for output in self._query.outputs if isinstance(output, Output))
        if len(outputs) == len(self._query.outputs):
            yield Project(name, f"{RESULT} of {name}", outputs)
            name = f"{RESULT} of {name}"
        yield Emit(name, self._query.text)
