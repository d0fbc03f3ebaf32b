"""From a plan to the program of the site that runs it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from braid.errors import PlanError, PlanningError
from braid.model.expression import Expression, columns_of
from braid.model.plan import Plan
from braid.model.program import (
    ALWAYS,
    Emit,
    Exclude,
    Filter,
    Guard,
    Instruction,
    Join,
    Project,
    Ship,
    SiteProgram,
    Union,
    Update,
)
from braid.model.query import Output, Query, Source
from braid.model.tree import JoinTree, merges, probe_order
from braid.model.window import Rows

RESULT = "result"
CANDIDATES = "candidates"
"""Results, but for what is excluded."""


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


def separator(query: Query, sign: str) -> str:
    """A sign, repeated until no name of a stream has it."""
    found = sign
    while any(found in alias for alias in query.aliases):
        found += sign
    return found


def check_shipped(programs: Mapping[str, SiteProgram]) -> None:
    """Refuse to ship some rows of a stream whose window counts all of them: it would count too few where they arrive.

    Where the window is partitioned, whole partitions may be left out: each is counted on its own.
    """
    for site, program in programs.items():
        for step in program.instructions:
            if isinstance(step, Ship) and step.stream in program.query.aliases:
                source = program.query.source(step.stream)
                if isinstance(source.window, Rows):
                    _check_counted(source, source.window, site, step, _left_out(program.query, step))


def _check_counted(
    source: Source, window: Rows, site: str, ship: Ship, left_out: Iterable[tuple[Expression, str, str]]
) -> None:
    for expression, which, instead in left_out:
        if not {column.name for column in columns_of(expression)} <= set(window.partition_by):
            raise PlanningError(
                f"{source} counts all rows of its stream, but only those {which} are shipped from '{site}' to "
                f"'{ship.site}', where it is joined; give it a window of time, or {instead}"
            )


def _left_out(query: Query, ship: Ship) -> Iterator[tuple[Expression, str, str]]:
    """By what rows of a stream are left out when it is shipped, which then are, and how to do without."""
    for predicate in query.graph.selections_of(ship.stream):
        yield predicate.expression, f"that satisfy {predicate}", "leave the condition out and check it on the results"
    if ship.guard.partitions is not None:
        key = ship.guard.partitions.attribute_class.key(ship.stream)
        instead = "choose a planner that does not divide joins into parts, such as 'stream_join_opt'"
        yield key, f"of one part of the values of {key}", instead


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


def finish(query: Query, stream: str) -> Iterable[Instruction]:
    """The rows of a stream are the results of a query."""
    result = f"{RESULT} of {stream}"
    if not query.exclusions:
        return Project(stream, result, query.outputs), Emit(result, query.text)
    compared = (Output(str(column), column) for column in query.compared)
    return (
        Project(stream, f"{CANDIDATES} of {stream}", (*query.outputs, *compared)),
        Exclude(f"{CANDIDATES} of {stream}", result, query.exclusions),
        Emit(result, query.text),
    )
