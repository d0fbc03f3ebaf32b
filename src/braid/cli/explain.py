"""`braid explain`: show how a query is joined."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from braid.cli.commands import Json, print_json
from braid.cli.query_argument import QueryArgument, query_text
from braid.files.statistics import statistics_of
from braid.language import parse
from braid.model.plan import Plan


def explain(
    query: QueryArgument,
    statistics: Annotated[
        Path | None,
        typer.Option(
            help="A YAML file with rates, sizes, populations and selectivities; without it, no rates are estimated."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show the windows of a query, and the order and conditions in which new rows of each stream probe them.

    \b
    braid explain "SELECT a.x FROM a [RANGE 1 MINUTE], b [RANGE 1 MINUTE] WHERE a.x = b.x"
    """
    parsed = parse(query_text(query))
    plan = Plan.in_text_order(parsed)
    known_statistics = statistics_of(statistics)
    if not as_json:
        typer.echo(plan.explain(known_statistics))
        return
    print_json(
        {
            "sources": [str(source) for source in parsed.sources],
            "joins_in_order": [str(join) for join in parsed.fixed_joins],
            "existence_tests": [str(existence) for existence in parsed.existences],
            "predicates": [str(predicate) for predicate in parsed.predicates],
            "plan": {head: list(sequence) for head, sequence in plan.sequences.items()},
        }
    )
