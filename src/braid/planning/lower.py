"""From a plan to the program of the site that runs it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from braid.errors import PlanError
from braid.model.plan import Plan
from braid.model.program import (
    ALWAYS,
    Emit,
    Filter,
    Guard,
    Instruction,
    Join,
    Project,
    SiteProgram,
    Update,
)
from braid.model.query import Output, Query

RESULT = "result"


def lower(plan: Plan) -> SiteProgram:
    """One site that does it all: windows of every stream, one chain of joins per head."""
    return lower_partitioned([(ALWAYS, plan)])


def lower_partitioned(guarded: Sequence[tuple[Guard, Plan]]) -> SiteProgram:
    """One site with a plan of its own for each guard; together the guards must cover every head once."""
    query = guarded[0][1].query
    if not query.bound:
        raise PlanError("a site program needs a query bound to its streams")
    instructions = [*_windows(query)]
    for number, (guard, plan) in enumerate(guarded):
        instructions += _chains(plan, guard, "" if len(guarded) == 1 else f"{number}:")
    return SiteProgram(query, tuple(instructions))


def _windows(query: Query) -> Iterator[Instruction]:
    for alias in query.aliases:
        for predicate in query.graph.selections_of(alias):
            yield Filter(alias, predicate)
        yield Update(alias)


def _chains(plan: Plan, guard: Guard, prefix: str) -> Iterator[Instruction]:
    graph = plan.query.graph
    arrow = ">"
    while any(arrow in alias for alias in plan.query.aliases):
        arrow += ">"
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
        yield from _finish(plan.query, probe)


def _finish(query: Query, stream: str) -> Iterable[Instruction]:
    outputs = tuple(output for output in query.outputs if isinstance(output, Output))
    return Project(stream, f"{RESULT} of {stream}", outputs), Emit(f"{RESULT} of {stream}", query.text)
