"""`braid deploy`: plan the queries of a network file, and let its sites run them."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from braid.cli.commands import Json, print_json, progress, screen
from braid.errors import BraidError, FileError, RunError
from braid.files.network import NetworkFile, NetworkQueryEntry, load_network

if TYPE_CHECKING:
    from braid.hosts.deployment_request import DeploymentRequest
    from braid.runtime.sites.deployed import Deployed

LOOK_SECONDS = 0.5
"""Seconds between two looks at which sites are there."""

ANSWERS_SECONDS = 10.0
"""How long to wait until all sites of a query have said that they run."""


def deploy(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A YAML file with a network, streams and queries.")],
    wait: Annotated[float, typer.Option(min=0, help="Seconds to wait for the streams of sites that start.")] = 120.0,
    as_json: Json = False,
) -> None:
    """Plan the queries of a network file, and announce to its sites what each of them runs.

    A query that was deployed before keeps its plan. Sites are started with `braid site FILE --name SITE`.
    """
    network = load_network(file)
    with progress.status("waiting for the streams of the sites"):
        deployed = deploy_queries(network, wait)
        silent = silent_sites(network, deployed, min(wait, ANSWERS_SECONDS))
    for site in silent:
        progress.print(
            f"site {site} does not run, and the queries wait for it; start it with braid site {file} --name {site}",
            soft_wrap=True,
        )
    if as_json:
        print_json({query.name: {"sites": list(query.sites), "cost": query.bill.total} for query in deployed})
        return
    for query in deployed:
        screen.print(f"[bold]{query.name}[/bold]")
        screen.print(query.explanation, markup=False)


def deploy_queries(network: NetworkFile, wait: float) -> list[Deployed]:
    """Deploy all queries of a file, once the sites have announced the streams."""
    from braid.hosts.network_channels import channels_of_file
    from braid.hosts.registry import Registry

    registry = Registry(network.topology, channels_of_file(network))
    ends = time.monotonic() + wait
    while missing := [entry for entry in network.streams if entry.name not in registry.streams()]:
        if time.monotonic() > ends:
            sites = sorted({entry.site for entry in missing})
            raise RunError(
                f"the streams {', '.join(entry.name for entry in missing)} are not there: start "
                f"{' and '.join(f'site {site}' for site in sites)} with braid site FILE --name {sites[0]}"
            )
        time.sleep(LOOK_SECONDS)
    deployed = []
    for query in network.queries:
        try:
            deployed.append(registry.deploy(request_of(query)))
        except FileError:
            raise
        except BraidError as error:
            raise query.location.error(f"query '{query.name}': {error}") from error
    return deployed


def silent_sites(network: NetworkFile, deployed: Iterable[Deployed], wait: float) -> tuple[str, ...]:
    """The sites that have a part in some queries, or write their results, and do not run after some seconds."""
    from braid.hosts.network_channels import channels_of_file
    from braid.hosts.roll_call import RollCall

    names = {query.name for query in deployed}
    written = [entry for entry in network.queries if entry.name in names and entry.output is not None]
    sinks = {entry.sink for entry in written if entry.sink is not None}
    sites = sinks.union(*(query.sites for query in deployed))
    roll_call = RollCall(channels_of_file(network))
    ends = time.monotonic() + wait
    while (silent := roll_call.silent(sites, time.time())) and time.monotonic() < ends:
        time.sleep(LOOK_SECONDS)
    return silent


def request_of(query: NetworkQueryEntry) -> DeploymentRequest:
    """What a network file says of how a query is deployed."""
    from braid.hosts.deployment_request import DeploymentRequest

    return DeploymentRequest(
        query.text,
        query.name,
        query.sink,
        query.planner,
        query.cost,
        query.statistics,
        shards=query.shards or 1,
        reuse=query.reuse,
        since=query.since,
    )
