"""`braid plan`: a query laid out over a network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from braid.cli.commands import Json, print_json, progress
from braid.cli.explain import Query
from braid.cli.programs import program_json
from braid.files.statistics import query_text, statistics_of
from braid.model.network.topology import Topology
from braid.planning.cost.models import MODELS
from braid.planning.plan import plan as make_plan
from braid.planning.planners import PLANNERS


def plan(
    query: Query,
    topology: Annotated[Path, typer.Option(help="A YAML or JSON file with the links, and the sites, of the network.")],
    statistics: Annotated[Path, typer.Option(help="A YAML file: rates, selectivities and sites of the streams.")],
    sink: Annotated[
        str | None, typer.Option(help="The site where the result is wanted; anywhere if not given.")
    ] = None,
    planner: Annotated[str, typer.Option(help=f"One of {', '.join(PLANNERS)}.")] = "exact",
    cost: Annotated[str, typer.Option(help=f"One of {', '.join(MODELS)}.")] = "network_usage",
    deadline: Annotated[float | None, typer.Option(help="Seconds that planning may take.")] = None,
    as_json: Json = False,
) -> None:
    """Lay a query out over a network: which streams are joined first, and where.

    \b
    topology:    links: [{source: paris, target: lyon, latency: 0.004}]
    statistics:  rates: {f: 100, b: 20}
                 selectivities: {f.num = b.flight: 0.0001}
                 sites: {f: paris, b: lyon}
                 histograms: {f.num: [{value: 7, rate: 60}, {first: 10, last: 99, rate: 40}], ..}
    """
    text, known, network = query_text(query), statistics_of(statistics), Topology.load(topology)
    with progress.status("planning"):
        made = make_plan(text, known, network, planner=planner, cost=cost, sink=sink, deadline=deadline)
    if not as_json:
        typer.echo(made.explain())
        return
    print_json(
        {
            "planner": made.planner,
            "considered": made.considered,
            "cost": made.cost,
            "unit": made.bill.unit,
            "bill": [
                {"what": charge.what, "from": charge.source, "to": charge.target, "amount": charge.amount}
                for charge in made.bill.charges
                if charge.amount
            ],
            "plan": {head: list(sequence) for head, sequence in made.plan.sequences.items()},
            "programs": {site: program_json(program) for site, program in made.programs.items()},
        }
    )
