"""`braid replan`: change the plans of running queries to what their network file says now."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from braid.cli.commands import progress, screen
from braid.cli.deploy import request_of
from braid.errors import BraidError, FileError, did_you_mean
from braid.files.network import NetworkFile, NetworkQueryEntry, load_network

if TYPE_CHECKING:
    from braid.hosts.registry import Registry

LOOK_SECONDS = 0.5
"""Seconds between two looks at how far a change is."""


def replan(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A YAML file with a network, streams and queries.")],
    query: Annotated[str | None, typer.Option(help="The query to plan anew; all of the file by default.")] = None,
    wait: Annotated[bool, typer.Option(help="Wait until the old plan has ended.")] = True,
) -> None:
    """Plan queries that run anew, and change to the new plans while they run.

    The planner, the statistics, the cost model and the topology are what the file says now: edit it, then call this.
    The sites carry the change out. It goes on if this command is stopped.
    """
    from braid.channels.kinds import open_channels
    from braid.hosts.registry import Registry

    network = load_network(file)
    registry = Registry(network.topology, open_channels(network.channels, network.directory))
    for entry in _chosen(network, query):
        try:
            began = _begin(registry, entry)
        except FileError:
            raise
        except BraidError as error:
            raise entry.location.error(f"query '{entry.name}': {error}") from error
        if not began:
            screen.print(f"{entry.name} keeps its plan")
        elif wait:
            _await(registry, entry.name)


def _chosen(network: NetworkFile, name: str | None) -> list[NetworkQueryEntry]:
    entries = [entry for entry in network.queries if name in (None, entry.name)]
    if not entries:
        names = [entry.name for entry in network.queries]
        raise FileError(f"the file has no query '{name}'; {did_you_mean(name or '', names)}")
    return entries


def _begin(registry: Registry, entry: NetworkQueryEntry) -> bool:
    """Begin to change the plan of a query; False if the new plan is the one that it has."""
    deployed = registry.deployment(entry.name)
    plan = registry.plan(request_of(entry), deployed.query, deployed.origins)
    if plan.solution.layout in deployed.explanation:
        return False
    registry.begin_change(entry.name, plan, "braid replan", time.time())
    screen.print(f"[bold]{entry.name}[/bold]")
    screen.print(plan.explain(), markup=False)
    return True


def _await(registry: Registry, name: str) -> None:
    from braid.hosts.delays import Delays

    delays = Delays(registry, progress.print)
    with progress.status("") as status:
        while (state := registry.changes.under_way(name)) is not None:
            status.update(f"the plan change of {name} is {state.phase}")
            delays.look(registry.deployment(name), time.time())
            time.sleep(LOOK_SECONDS)
    move = registry.changes.history(name)[-1]
    screen.print(f"{name} has changed its plan" if move.is_done else f"the change was aborted: {move.because}")
