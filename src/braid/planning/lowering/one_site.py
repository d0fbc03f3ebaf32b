"""From a plan to the program of the site that runs it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from braid.errors import PlanError
from braid.model.plan import Plan
from braid.model.program import (
    ALWAYS,
    Filter,
    Guard,
    Instruction,
    Join,
    SiteProgram,
    Union,
    Update,
)
from braid.model.query import Query
from braid.model.tree import JoinTree, merges, probe_order
from braid.planning.lowering.emitting import finish
from braid.planning.stream_names import separator


def lower(plan: Plan) -> SiteProgram:
    """One site that does it all: windows of every stream, and one chain of joins per head or a tree of joins."""
    if plan.tree is None:
        return lower_partitioned([(ALWAYS, plan)])
    _check_bound(plan.query)
    return SiteProgram(plan.query, (*_windows(plan.query), *_tree(plan.query, plan.tree)))


def lower_partitioned(guarded: Sequence[tuple[Guard, Plan]]) -> SiteProgram:
    """One site with a plan of its own for each guard; together the guards must cover every head once."""
    query = guarded[0][1].query
    _check_bound(query)
    if any(plan.tree is not None for _, plan in guarded):
        raise PlanError("a plan for a part of the keys or of the time is made of probe sequences, not a tree")
    if len(query.aliases) == 1:
        guarded = [(ALWAYS, guarded[0][1])]  # Where nothing is joined all plans are one.
    instructions = [*_windows(query)]
    for number, (guard, plan) in enumerate(guarded):
        instructions += _chains(plan, guard, "" if len(guarded) == 1 else f"{number}:")
    return SiteProgram(query, tuple(instructions))


def _windows(query: Query) -> Iterator[Instruction]:
    for alias in query.aliases:
        for predicate in query.graph.selections_of(alias):
            yield Filter(alias, predicate)
        yield Update(alias)


def _tree(query: Query, tree: JoinTree) -> Iterator[Instruction]:
    """Every join with its inputs first: new rows of one input probe the others, and what comes of it is kept."""
    plus, arrow = separator(query, "+"), separator(query, ">")

    def name(part: JoinTree) -> str:
        return plus.join(alias for alias in query.aliases if alias in part.streams)

    for merge in merges(tree):
        results = []
        for head in merge.inputs:
            probe, bound = name(head), head.streams
            for part in probe_order(query, merge.inputs, head):
                result = f"{probe}{arrow}{name(part)}"
                yield Join(probe, name(part), result, *query.graph.between(bound, part.streams))
                probe, bound = result, bound | part.streams
            results.append(probe)
        yield Union(tuple(results), name(merge))
        if merge is not tree:
            yield Update(name(merge))
    yield from finish(query, name(tree))


def _check_bound(query: Query) -> None:
    if not query.bound:
        raise PlanError("a site program needs a query bound to its streams")


def _chains(plan: Plan, guard: Guard, prefix: str) -> Iterator[Instruction]:
    graph = plan.query.graph
    arrow = separator(plan.query, ">")
    for head, sequence in plan.sequences.items():
        probe, bound = head, [head]
        for stream in sequence:
            result = prefix + arrow.join([*bound, stream])
            yield Join(
                probe,
                stream,
                result,
                graph.classes_between(bound, stream),
                graph.residuals_at(bound, stream),
                guard if probe == head else ALWAYS,
            )
            probe = result
            bound.append(stream)
        yield from finish(plan.query, probe)
