"""`braid explain`: how a query would be joined."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from braid.cli.commands import Json, print_json
from braid.files.statistics import query_text, statistics_of
from braid.language import parse
from braid.model.plan import Plan

Query = Annotated[str, typer.Argument(metavar="QUERY", help="A query in quotes, or a file that has one.")]


def explain(
    query: Query,
    statistics: Annotated[
        Path | None, typer.Option(help="A YAML file of figures: rates, sizes, populations, selectivities.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show a query's windows and, for the new rows of each stream, which window is probed first, on what condition.

    \b
    braid explain "SELECT a.x FROM a [RANGE 1 MINUTE], b [RANGE 1 MINUTE] WHERE a.x = b.x"
    """
    understood = parse(query_text(query))
    plan = Plan.in_text_order(understood)
    known = statistics_of(statistics)
    if not as_json:
        typer.echo(plan.explain(known))
        return
    print_json(
        {
            "sources": [str(source) for source in understood.sources],
            "excluded": [str(exclusion) for exclusion in understood.exclusions],
            "predicates": [str(predicate) for predicate in understood.predicates],
            "plan": {head: list(sequence) for head, sequence in plan.sequences.items()},
        }
    )
