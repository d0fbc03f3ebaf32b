"""`braid plan`: plan a query over a network of sites."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from braid.cli.commands import Json, print_json, progress
from braid.cli.programs import program_json
from braid.cli.query_argument import QueryArgument, query_text
from braid.files.statistics import statistics_of
from braid.model.network.topology import Topology
from braid.planning.cost.models import MODELS
from braid.planning.plan import plan as make_plan
from braid.planning.planners import PLANNERS


def plan(
    query: QueryArgument,
    topology: Annotated[Path, typer.Option(help="A YAML or JSON file with the links and sites of the network.")],
    statistics: Annotated[
        Path, typer.Option(help="A YAML file with the rates, selectivities and sites of the streams.")
    ],
    sink: Annotated[str | None, typer.Option(help="The site that needs the results; any site by default.")] = None,
    planner: Annotated[str, typer.Option(help=f"One of {', '.join(PLANNERS)}.")] = "exact",
    cost: Annotated[str, typer.Option(help=f"The cost model: one of {', '.join(MODELS)}.")] = "network_usage",
    deadline: Annotated[
        float | None, typer.Option(help="The most seconds that planning may take; no limit by default.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Plan a query over a network: which streams to join first, and at which site.

    The files look like this:

    \b
    topology:    links: [{source: paris, target: lyon, latency: 0.004}]
    statistics:  rates: {f: 100, b: 20}
                 selectivities: {f.num = b.flight: 0.0001}
                 sites: {f: paris, b: lyon}
                 histograms: {f.num: [{value: 7, rate: 60}, {first: 10, last: 99, rate: 40}], ..}
    """
    text = query_text(query)
    known_statistics = statistics_of(statistics)
    network = Topology.load(topology)
    with progress.status("planning"):
        deployment = make_plan(
            text, known_statistics, network, planner=planner, cost=cost, sink=sink, deadline=deadline
        )
    if not as_json:
        typer.echo(deployment.explain())
        return
    print_json(
        {
            "planner": deployment.planner,
            "considered": deployment.considered,
            "cost": deployment.cost,
            "unit": deployment.bill.unit,
            "bill": [
                {"what": charge.what, "from": charge.source, "to": charge.target, "amount": charge.amount}
                for charge in deployment.bill.charges
                if charge.amount
            ],
            "plan": {head: list(sequence) for head, sequence in deployment.plan.sequences.items()},
            "programs": {site: program_json(program) for site, program in deployment.programs.items()},
        }
    )
