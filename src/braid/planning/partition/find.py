"""FINDPARTITION of the PMJoin paper: which joins of a plan can have a separate plan for each part of the key space.

A join can be partitioned if all its conditions are equalities on one attribute. It absorbs the joins below it that are
on the same attribute. Joins with the most input are chosen first. No chosen join directly feeds another, because the
result of a partitioned join is spread over several sites.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass

from braid.model.graph import AttributeClass
from braid.model.tree import JoinTree, Merge, merges
from braid.planning.problem import Problem


@dataclass(frozen=True)
class Partitionable:
    """A join whose inputs are all joined on one attribute class, together with the joins below it that it absorbs.

    `merge` is the topmost of these joins; `inputs` are the inputs of all of them.
    """

    merge: Merge
    attribute: AttributeClass
    inputs: tuple[JoinTree, ...]

    def volume(self, problem: Problem) -> float:
        """The total volume of its inputs."""
        return sum(problem.volume(problem.mask(subtree.streams)) for subtree in self.inputs)


def find_partitions(problem: Problem, tree: JoinTree) -> list[Partitionable]:
    """Every join of the tree that can be partitioned.

    The last input of a join stays at its site, and the other inputs are shipped there. So a join that is the last input
    of another must have its result at one site, and cannot be partitioned.
    """
    return list(_find(problem, tree, {merge.inputs[-1] for merge in merges(tree)}))


def _find(problem: Problem, tree: JoinTree, staying: Set[JoinTree]) -> Iterator[Partitionable]:
    if not isinstance(tree, Merge):
        return
    attribute = _attribute(problem, tree)
    inputs = tree.inputs
    if tree not in staying and attribute is not None:
        inputs = _absorbed(problem, tree, attribute)
        yield Partitionable(tree, attribute, inputs)
    for subtree in inputs:
        yield from _find(problem, subtree, staying)


def _absorbed(problem: Problem, tree: Merge, attribute: AttributeClass) -> tuple[JoinTree, ...]:
    """The inputs of a join, with joins on the same attribute replaced by their own inputs."""
    inputs: list[JoinTree] = []
    for subtree in tree.inputs:
        if isinstance(subtree, Merge) and _attribute(problem, subtree) == attribute:
            inputs += _absorbed(problem, subtree, attribute)
        else:
            inputs.append(subtree)
    return tuple(inputs)


def _attribute(problem: Problem, merge: Merge) -> AttributeClass | None:
    """The attribute class that ties all inputs of a join, if no other condition is between them."""
    graph = problem.query.graph
    stream_sets = [subtree.streams for subtree in merge.inputs]
    ties = [tied for tied in graph.classes if sum(bool(tied.sources & streams) for streams in stream_sets) > 1]
    has_residual = any(
        predicate.sources <= merge.streams and not any(predicate.sources <= streams for streams in stream_sets)
        for predicate in graph.residuals
    )
    if has_residual or len(ties) != 1 or not all(ties[0].sources & streams for streams in stream_sets):
        return None
    return ties[0]


def choose_partitions(problem: Problem, candidates: list[Partitionable]) -> list[Partitionable]:
    """The joins to partition, largest input first; a join directly above or below a chosen one is not partitioned."""
    chosen: list[Partitionable] = []
    waiting = sorted(candidates, key=lambda join: (-join.volume(problem), problem.mask(join.merge.streams)))
    while waiting:
        best = waiting.pop(0)
        chosen.append(best)
        waiting = [other for other in waiting if not (_feeds(other, best) or _feeds(best, other))]
    return chosen


def _feeds(lower: Partitionable, upper: Partitionable) -> bool:
    return any(subtree is lower.merge for subtree in upper.inputs)
