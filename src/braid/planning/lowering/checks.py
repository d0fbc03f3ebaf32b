"""Checks of site programs that a planner must not violate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from braid.errors import PlanningError
from braid.model.expressions.expression import Expression, columns_of
from braid.model.program import Ship, SiteProgram
from braid.model.query import Query, Source


def check_shipped(programs: Mapping[str, SiteProgram]) -> None:
    """Raise a `PlanningError` if only some rows are shipped of a stream whose window counts rows.

    The window counts all rows of the stream; at the receiving site it would count too few. A partitioned window counts
    each partition separately, so whole partitions may be left out.
    """
    for site, program in programs.items():
        for ship in program.all_of(Ship):
            if ship.stream in program.query.aliases:
                source = program.query.source(ship.stream)
                if source.window.counts_rows:
                    _check_counted(source, site, ship, _selections(program.query, ship))


def _check_counted(source: Source, site: str, ship: Ship, selections: Iterable[tuple[Expression, str, str]]) -> None:
    for expression, shipped, instead in selections:
        if not {column.name for column in columns_of(expression)} <= set(source.window.partition_by):
            raise PlanningError(
                f"{source} counts all rows of its stream, but only those {shipped} are shipped from '{site}' to "
                f"'{ship.site}', where it is joined; give it a window of time, or {instead}"
            )


def _selections(query: Query, ship: Ship) -> Iterator[tuple[Expression, str, str]]:
    """Each expression that decides which rows are shipped, a text for the rows that are, and what to do instead."""
    for predicate in query.graph.selections_of(ship.stream):
        yield predicate.expression, f"that satisfy {predicate}", "leave the condition out and check it on the results"
    if ship.guard.partitions is not None:
        key = ship.guard.partitions.attribute_class.key(ship.stream)
        instead = "choose a planner that does not divide joins into parts, such as 'stream_join_opt'"
        yield key, f"of one part of the values of {key}", instead
