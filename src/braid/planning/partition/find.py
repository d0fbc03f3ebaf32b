"""FINDPARTITION: which joins of a plan can have a plan of their own for each part of the key space.

A join can if all its conditions are equalities on one attribute. It takes in the joins below it that can on the same
attribute. Of those found, the ones with the most input are chosen first, none above or below another, because what
comes out of a partitioned join is at several sites.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass

from braid.model.graph import AttributeClass
from braid.model.tree import JoinTree, Merge, merges
from braid.planning.problem import Problem


@dataclass(frozen=True)
class Partitionable:
    """A join, with those below it that it takes in, whose inputs all meet on one attribute class.

    `merge` is the topmost of the joins; `inputs` are what comes in.
    """

    merge: Merge
    attribute: AttributeClass
    inputs: tuple[JoinTree, ...]

    def volume(self, problem: Problem) -> float:
        """The total of its inputs."""
        return sum(problem.volume(problem.mask(part.streams)) for part in self.inputs)


def find_partitions(problem: Problem, tree: JoinTree) -> list[Partitionable]:
    """Every join of the tree that can be partitioned, except where its result must stay at one site.

    The last input of a join is the one that stays where it is: the others come to it, so it cannot be partitioned.
    """
    return list(_find(problem, tree, {merge.inputs[-1] for merge in merges(tree)}))


def _find(problem: Problem, tree: JoinTree, staying: Set[JoinTree]) -> Iterator[Partitionable]:
    if not isinstance(tree, Merge):
        return
    attribute = _attribute(problem, tree)
    inputs = tree.inputs
    if tree not in staying and attribute is not None:
        inputs = _taken_in(problem, tree, attribute)
        yield Partitionable(tree, attribute, inputs)
    for part in inputs:
        yield from _find(problem, part, staying)


def _taken_in(problem: Problem, tree: Merge, attribute: AttributeClass) -> tuple[JoinTree, ...]:
    """The inputs of a join, where those that are joins on the same attribute are replaced by their own inputs."""
    inputs: list[JoinTree] = []
    for part in tree.inputs:
        if isinstance(part, Merge) and _attribute(problem, part) == attribute:
            inputs += _taken_in(problem, part, attribute)
        else:
            inputs.append(part)
    return tuple(inputs)


def _attribute(problem: Problem, merge: Merge) -> AttributeClass | None:
    """The one attribute class on which all inputs of a join meet, if nothing else ties them."""
    graph = problem.query.graph
    parts = [part.streams for part in merge.inputs]
    ties = [tied for tied in graph.classes if sum(bool(tied.sources & part) for part in parts) > 1]
    residual = any(
        predicate.sources <= merge.streams and not any(predicate.sources <= part for part in parts)
        for predicate in graph.residuals
    )
    if residual or len(ties) != 1 or not all(ties[0].sources & part for part in parts):
        return None
    return ties[0]


def choose_partitions(problem: Problem, found: list[Partitionable]) -> list[Partitionable]:
    """The largest by input first; what would be directly above or below one that is chosen is left as it was."""
    chosen: list[Partitionable] = []
    waiting = sorted(found, key=lambda join: (-join.volume(problem), problem.mask(join.merge.streams)))
    while waiting:
        best = waiting.pop(0)
        chosen.append(best)
        waiting = [other for other in waiting if not (_feeds(other, best) or _feeds(best, other))]
    return chosen


def _feeds(lower: Partitionable, upper: Partitionable) -> bool:
    return any(part is lower.merge for part in upper.inputs)
