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
    from braid.runtime.migration.change import Change, ChangeState

LOOK_SECONDS = 0.5
"""Seconds between two looks at how far a change is."""


def replan(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A YAML file with a network, streams and queries.")],
    query: Annotated[str | None, typer.Option(help="The query to plan anew; all of the file by default.")] = None,
    wait: Annotated[bool, typer.Option(help="Wait until the old plan has ended.")] = True,
) -> None:
    """Plan queries that run anew, and change to the new plans while they run.

    The planner, the statistics, the cost model and the topology are what the file says now: edit it, then call this.
    The sites carry the change out. It goes on if this command is stopped. Call this again to replace a change that the
    sites have not agreed on yet.
    """
    from braid.hosts.network_channels import channels_of_file
    from braid.hosts.registry import Registry

    network = load_network(file)
    registry = Registry(network.topology, channels_of_file(network))
    for entry in _chosen(network, query):
        try:
            change = _begin(registry, entry)
        except FileError:
            raise
        except BraidError as error:
            raise entry.location.error(f"query '{entry.name}': {error}") from error
        if change is None:
            screen.print(f"{entry.name} keeps its plan")
        elif wait:
            _await(registry, change)


def _chosen(network: NetworkFile, name: str | None) -> list[NetworkQueryEntry]:
    entries = [entry for entry in network.queries if name in (None, entry.name)]
    if not entries:
        names = [entry.name for entry in network.queries]
        raise FileError(f"the file has no query '{name}'; {did_you_mean(name or '', names)}")
    return entries


def _begin(registry: Registry, entry: NetworkQueryEntry) -> Change | None:
    """Begin to change the plan of a query; None if the new plan is the one that it has.

    A change that is under way is given up for this one, or, if it is agreed on, awaited.
    """
    deployed = registry.deployment(entry.name)
    plan = registry.fitted_plan(deployed, registry.plans.plan(request_of(entry), deployed.query, deployed.origins))
    if not registry.make_way(entry.name):
        agreed_on = registry.changes.under_way(entry.name)
        if agreed_on is not None:
            _await(registry, agreed_on.change)
    if plan.solution.layout in registry.deployment(entry.name).explanation:
        return None
    change = registry.begin_change(entry.name, plan, "braid replan", time.time())
    screen.print(f"[bold]{entry.name}[/bold]")
    screen.print(plan.explain(), markup=False)
    return change


def _await(registry: Registry, change: Change) -> None:
    """Wait until a plan change is over, and tell what came of it."""
    from braid.hosts.delays import Delays

    delays, name = Delays(registry, progress.print), change.query
    with progress.status("") as status:
        while (state := registry.changes.of(change)) is not None and not state.phase.is_over:
            status.update(f"the plan change of {name} is {state.phase}")
            delays.look(registry.deployment(name), time.time())
            time.sleep(LOOK_SECONDS)
    screen.print(_outcome(registry, change, state))


def _outcome(registry: Registry, change: Change, state: ChangeState | None) -> str:
    """What came of a change that is over. Its coordinator records that at its next look, then forgets the change."""
    from braid.runtime.migration.change import Phase

    if state is not None:
        is_done, because = state.phase is Phase.DONE, "" if state.verdict is None else state.verdict.reason
    else:
        moves = [move for move in registry.changes.history(change.query) if move.generation == change.new]
        if not moves:
            return f"the change is not there any more; query '{change.query}' may have been dropped"
        is_done, because = moves[-1].is_done, moves[-1].because
    return f"{change.query} has changed its plan" if is_done else f"the change was aborted: {because}"
