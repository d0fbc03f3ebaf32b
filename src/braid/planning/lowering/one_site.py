"""From a plan to the program of the site that runs it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from braid.errors import PlanError
from braid.model.plan import Plan
from braid.model.program import (
    Instruction,
    Join,
    SiteProgram,
    Union,
    Update,
    keep_windows,
)
from braid.model.query import Query
from braid.model.tree import JoinTree, merges, probe_order
from braid.planning.lowering.emitting import finish
from braid.planning.stream_names import separator


def lower(plan: Plan) -> SiteProgram:
    """A program for one site: a window of every stream, and one chain of joins for each head, or a tree of joins.

    Each part of the keys has a program of its own.
    """
    if plan.parts:
        programs = tuple((partition, lower(part_plan)) for partition, part_plan in plan.parts)
        return replace(lower(plan.whole), parts=programs)
    if not plan.query.bound:
        raise PlanError("a site program needs a query bound to its streams")
    joins = _chains(plan) if plan.tree is None else _tree(plan.query, plan.tree)
    return SiteProgram(plan.query, (*keep_windows(plan.query), *joins))


def _tree(query: Query, tree: JoinTree) -> Iterator[Instruction]:
    """Every join after its inputs: new rows of one input probe the other inputs, and an inner join keeps its result."""
    plus, arrow = separator(query, "+"), separator(query, ">")

    def name(subtree: JoinTree) -> str:
        return plus.join(alias for alias in query.aliases if alias in subtree.streams)

    for merge in merges(tree):
        results = []
        for head in merge.inputs:
            probe, bound = name(head), head.streams
            for other in probe_order(query, merge.inputs, head):
                result = f"{probe}{arrow}{name(other)}"
                yield Join(probe, name(other), result, *query.graph.between(bound, other.streams))
                probe, bound = result, bound | other.streams
            results.append(probe)
        yield Union(tuple(results), name(merge))
        if merge is not tree:
            yield Update(name(merge))
    yield from finish(query, name(tree))


def _chains(plan: Plan) -> Iterator[Instruction]:
    """A chain of joins for each head."""
    graph = plan.query.graph
    arrow = separator(plan.query, ">")
    for head, sequence in plan.sequences.items():
        probe, bound = head, [head]
        for stream in sequence:
            result = arrow.join([*bound, stream])
            yield Join(
                probe,
                stream,
                result,
                graph.classes_between(bound, stream),
                graph.residuals_at(bound, stream),
                path=plan.paths.get((head, stream)),
            )
            probe = result
            bound.append(stream)
        yield from finish(plan.query, probe)
