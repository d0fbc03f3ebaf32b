"""Placed plans as plain data, so that a program can go on with a plan that another one has made."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import pyarrow as pa

from braid.errors import PlanError
from braid.model.key_json import keys_from_json, keys_to_json
from braid.model.statistics import Others
from braid.model.tree import JoinTree, Leaf, Merge
from braid.planning.cost.histograms import in_order, is_range
from braid.planning.partition.find import find_partitions
from braid.planning.partition.inputs import ValuedInputs
from braid.planning.partition.parts import Part, PartitionedJoin
from braid.planning.partition.repricing import repriced
from braid.planning.problem import Problem
from braid.planning.solution.partitioned import PartitionedSolution
from braid.planning.solution.sequenced import HeadPlan, SequencedSolution
from braid.planning.solution.solution import Solution
from braid.planning.solution.tree import TreeSolution

Written = dict[str, Any]
"""A placed plan that JSON can hold.

It is a tree whose joins have sites, or a probe sequence for each head. With the tree there may be `joins` of it that
have a tree for each part of the keys.
"""


def written_of(solution: Solution) -> Written | None:
    """A placed plan as plain data; None for one that reuses joins of others, or whose keys cannot be written."""
    match solution:
        case SequencedSolution():
            return {"sequences": [_written_sequence(solution, plan) for plan in solution.heads]}
        case PartitionedSolution():
            try:
                joins = [_written_join(join) for join in solution.joins]
            except (pa.ArrowException, TypeError, ValueError):
                return None
            return {"tree": _written_tree(solution.tree, solution.placement), "joins": joins}
        case TreeSolution():
            is_own = not any(True for _ in solution.reused(solution.tree))
            return {"tree": _written_tree(solution.tree, solution.placement)} if is_own else None


def _written_sequence(solution: SequencedSolution, plan: HeadPlan) -> list[Any]:
    names = solution.problem.streams
    return [names[plan.head], [names[stream] for stream in plan.order], list(plan.placements)]


def _written_join(partitioned: PartitionedJoin) -> Written:
    return {
        "streams": sorted(partitioned.join.merge.streams),
        "inputs": [sorted(subtree.streams) for subtree in partitioned.join.inputs],
        "function": partitioned.function,
        "nulls": partitioned.nulls,
        "parts": [
            {**_written_values(part.values), "tree": _written_tree(part.solution.tree, part.solution.placement)}
            for part in partitioned.parts
        ],
    }


def _written_values(values: Iterable[Hashable]) -> Written:
    values = list(values)
    return {
        "values": keys_to_json([value for value in values if not is_range(value) and not isinstance(value, Others)]),
        "ranges": [list(value) for value in values if is_range(value)],
        "others": [value.count for value in values if isinstance(value, Others)],
    }


def _written_tree(tree: JoinTree, placement: Mapping[Merge, str]) -> Any:
    if isinstance(tree, Merge):
        return [placement[tree], [_written_tree(below, placement) for below in tree.inputs]]
    assert isinstance(tree, Leaf)
    return tree.stream


def divided_inputs(written: Written | None) -> list[list[frozenset[str]]]:
    """The inputs of each join that has several parts, each given by its streams."""
    joins = [] if written is None else written.get("joins", [])
    return [list(map(frozenset, join["inputs"])) for join in joins if len(join["parts"]) > 1]


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
        whole = TreeSolution(problem, _read_tree(written["tree"], placement), placement, 1)
        if "joins" not in written:
            return whole
        joins = [_read_join(join, whole) for join in written["joins"]]
        return repriced(PartitionedSolution(whole, tuple(joins), 1), problem)
    except (KeyError, ValueError, TypeError, pa.ArrowException) as error:
        raise PlanError(f"this is no plan of the query: {error!r} in {written!r:.200}") from error


def _read_join(written: Written, whole: TreeSolution) -> PartitionedJoin:
    streams = frozenset(written["streams"])
    joins = {join.merge.streams: join for join in find_partitions(whole.problem, whole.tree)}
    join = joins[streams]
    values = [_read_values(part) for part in written["parts"]]
    inputs = ValuedInputs.of(whole, join, listed=[value for of_part in values for value in of_part])
    if inputs is None or not values:
        raise ValueError("no part lists any keys")
    parts = []
    for of_part, part in zip(values, written["parts"], strict=True):
        placement: dict[Merge, str] = {}
        tree = _read_tree(part["tree"], placement)
        parts.append(Part(of_part, TreeSolution(inputs.problem, tree, placement, 1)))
    return PartitionedJoin(join, tuple(parts), written["function"], written["nulls"])


def _read_values(written: Written) -> tuple[Hashable, ...]:
    ranges = [(first, last) for first, last in written["ranges"]]
    return in_order([*keys_from_json(written["values"]), *ranges, *map(Others, written["others"])])


def _read_tree(written: Any, placement: dict[Merge, str]) -> JoinTree:
    if isinstance(written, str):
        return Leaf(written)
    site, inputs = written
    merge = Merge(tuple(_read_tree(below, placement) for below in inputs))
    placement[merge] = site
    return merge
