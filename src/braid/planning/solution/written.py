"""Placed plans as plain data, so that a program can go on with a plan that another one has made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from braid.errors import PlanError
from braid.model.tree import JoinTree, Leaf, Merge
from braid.planning.problem import Problem
from braid.planning.solution.sequenced import HeadPlan, SequencedSolution
from braid.planning.solution.solution import Solution
from braid.planning.solution.tree import TreeSolution

Written = dict[str, Any]
"""A placed plan that JSON can hold: a tree whose joins have sites, or a probe sequence for each head."""


def written_of(solution: Solution) -> Written | None:
    """A placed plan as plain data; None for one that reuses joins of others or has a plan for each part of the keys."""
    if isinstance(solution, SequencedSolution):
        names = solution.problem.streams
        return {
            "sequences": [
                [names[plan.head], [names[stream] for stream in plan.order], list(plan.placements)]
                for plan in solution.heads
            ]
        }
    if isinstance(solution, TreeSolution) and not any(True for _ in solution.reused(solution.tree)):
        return {"tree": _written_tree(solution.tree, solution.placement)}
    return None


def _written_tree(tree: JoinTree, placement: Mapping[Merge, str]) -> Any:
    if isinstance(tree, Merge):
        return [placement[tree], [_written_tree(below, placement) for below in tree.inputs]]
    assert isinstance(tree, Leaf)
    return tree.stream


def solution_of(written: Written, problem: Problem) -> Solution:
    """The placed plan that `written_of` wrote, for a problem of the same query; `PlanError` for anything else."""
    try:
        if "sequences" in written:
            position = problem.streams.index
            heads = [
                HeadPlan(position(head), tuple(map(position, order)), tuple(placements))
                for head, order, placements in written["sequences"]
            ]
            return SequencedSolution(problem, tuple(heads), 1)
        placement: dict[Merge, str] = {}
        return TreeSolution(problem, _read_tree(written["tree"], placement), placement, 1)
    except (KeyError, ValueError, TypeError) as error:
        raise PlanError(f"this is no plan of the query: {error!r} in {written!r:.200}") from error


def _read_tree(written: Any, placement: dict[Merge, str]) -> JoinTree:
    if isinstance(written, str):
        return Leaf(written)
    site, inputs = written
    merge = Merge(tuple(_read_tree(below, placement) for below in inputs))
    placement[merge] = site
    return merge
