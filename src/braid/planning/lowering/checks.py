"""What site programs must not do, refused by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from braid.errors import PlanningError
from braid.model.expressions.expression import Expression, columns_of
from braid.model.program import Ship, SiteProgram
from braid.model.query import Query, Source
from braid.model.window import Rows


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
