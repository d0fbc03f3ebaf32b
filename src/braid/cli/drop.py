"""`braid drop`: end a query of a network file for good."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from braid.cli.commands import progress, screen
from braid.files.network import load_network


def drop(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A YAML file with a network, streams and queries.")],
    query: Annotated[str, typer.Option(help="The name of the query.")],
    wait: Annotated[float, typer.Option(min=0, help="Seconds to wait until all its sites have stopped it.")] = 60.0,
) -> None:
    """End a query of a network for good: its sites stop it, and its channels and checkpoints are removed.

    All its sites must run. Joins that other queries read go on for them. Take the query out of the file, too:
    `braid deploy FILE` would deploy it anew.
    """
    from braid.hosts.drops import Drops
    from braid.hosts.network_channels import channels_of_file
    from braid.hosts.registry import Registry

    network = load_network(file)
    channels = channels_of_file(network)
    registry = Registry(network.topology, channels)
    with progress.status(f"waiting for the sites of {query}"):
        remaining = Drops(registry, channels).drop(query, wait)
    rest = "" if remaining is None else f"; its joins go on for {', '.join(registry.users(remaining))}"
    screen.print(f"{query} is dropped{rest}", markup=False)
