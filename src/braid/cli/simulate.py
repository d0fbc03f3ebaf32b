"""`braid simulate`: run the queries of a network file in virtual time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import pyarrow as pa
import pyarrow.dataset as ds
import typer
from rich.table import Table

from braid.cli.commands import Json, print_json, print_table, progress, screen
from braid.errors import BraidError, FileError, reason_of
from braid.files.network import NetworkFile, NetworkQueryEntry, StreamEntry, load_network
from braid.hosts.simulated.faults import Faults
from braid.hosts.simulated.simulate import simulate as run_simulation

if TYPE_CHECKING:
    from braid.hosts.simulated.simulation import Simulation

PLANNER = "exact"
"""The planner of queries that name none."""

EVERYTHING = "at_sink"
"""The planner that ships every stream to the sink and joins there: what a deployment is compared with."""


def simulate(
    file: Annotated[Path, typer.Argument(help="A YAML file with a network, its streams and queries.")],
    batch_rows: Annotated[
        int | None, typer.Option(min=1, help="Rows in each batch of a stream; 50 batches by default.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Decides how long sites pause before they look at what arrived.")] = 0,
    crash_rate: Annotated[
        float, typer.Option(min=0, max=0.5, help="The chance of a site to die at each point of a step.")
    ] = 0.0,
    plot: Annotated[Path | None, typer.Option(help="Draw the bytes on each link to this PNG or SVG file.")] = None,
    as_json: Json = False,
) -> None:
    """Run the queries of a file over its network in virtual time: results, bytes on each link, latency.

    Each query runs as planned, and once more with every stream shipped to the sink, for comparison. The file:

    \b
    topology:  {links: [{source: paris, target: lyon, latency: 0.004, bandwidth: 1000000}]}
    streams:   flights: {site: paris, path: flights.parquet, lateness: 5 seconds}
               bags:    {site: lyon, path: bags.parquet}
    queries:   gates:   {sql: SELECT .., sink: lyon, planner: exact, cost: network_usage}
    """
    network = load_network(file)
    tables = {stream.name: _table(stream) for stream in network.streams}
    outcomes: dict[str, tuple[Simulation, Simulation | None]] = {}
    for query in network.queries:
        with progress.status(f"simulating {query.name}"):
            planned = _simulate(network, query, tables, batch_rows, seed, crash_rate, query.planner or PLANNER)
            everything = None
            if query.sink is not None and query.planner != EVERYTHING:
                everything = _simulate(network, query, tables, batch_rows, seed, 0.0, EVERYTHING)
        outcomes[query.name] = planned, everything
    if plot is not None:
        _draw(outcomes, plot)
    if as_json:
        print_json({name: _as_json(*outcome) for name, outcome in outcomes.items()})
    else:
        for name, outcome in outcomes.items():
            _print(name, *outcome)


def _table(stream: StreamEntry) -> pa.Table:
    """The rows of a stream, in the order of its files and of the rows in them."""
    source = stream.source
    path = source.options.get("path")
    if path is None:
        raise source.location.error(f"stream '{stream.name}' has no path, and only files can be simulated; add one")
    try:
        return ds.dataset(path, format=source.format).to_table()
    except (OSError, ValueError, pa.ArrowException) as error:
        reason = reason_of(error) if isinstance(error, OSError) else str(error)
        raise source.location.error(f"stream '{stream.name}': cannot read {path}: {reason}") from error


def _simulate(
    network: NetworkFile,
    query: NetworkQueryEntry,
    tables: dict[str, pa.Table],
    batch_rows: int | None,
    seed: int,
    crash_rate: float,
    planner: str,
) -> Simulation:
    try:
        return run_simulation(
            query.text,
            tables,
            network.topology,
            sites={stream.name: stream.site for stream in network.streams},
            sink=query.sink,
            planner=planner,
            cost=query.cost,
            statistics=query.statistics,
            time={stream.name: stream.source.time for stream in network.streams},
            lateness={stream.name: stream.source.lateness for stream in network.streams},
            batch_rows=batch_rows,
            seed=seed,
            faults=Faults(crash_rate=crash_rate),
        )
    except FileError:
        raise
    except BraidError as error:
        raise query.location.error(f"query '{query.name}': {error}") from error


def _print(name: str, planned: Simulation, everything: Simulation | None) -> None:
    late = "" if planned.latency is None else f", {planned.latency:.3f} s after their event time (median)"
    screen.print(f"[bold]{name}[/bold]: {planned.results.num_rows:,} results{late}")
    screen.print(planned.deployment.explain(), markup=False)
    table = Table("link", "bytes", "rows", "batches", "planned")
    if everything is not None:
        table.add_column("bytes, everything shipped")
    for link in _links(planned, everything):
        traffic = planned.traffic(link)
        planned_bytes = "" if traffic.planned is None else f"{traffic.planned * planned.seconds:,.0f}"
        row = [f"{traffic.bytes:,}", f"{traffic.rows:,}", f"{traffic.batches:,}", planned_bytes]
        if everything is not None:
            row.append(f"{everything.traffic(link).bytes:,}")
        table.add_row(link, *row)
    print_table(table)


def _links(planned: Simulation, everything: Simulation | None) -> list[str]:
    """The links that either run used."""
    return sorted({*planned.links, *(everything.links if everything is not None else ())})


def _as_json(planned: Simulation, everything: Simulation | None) -> dict[str, Any]:
    return {
        "results": planned.results.num_rows,
        "latency": planned.latency,
        "planner": planned.deployment.planner,
        "cost": planned.deployment.cost,
        "links": _traffic_json(planned),
        "everything_shipped": None if everything is None else _traffic_json(everything),
    }


def _traffic_json(simulation: Simulation) -> dict[str, dict[str, float | None]]:
    return {link: vars(traffic) for link, traffic in simulation.links.items()}


def _draw(outcomes: dict[str, tuple[Simulation, Simulation | None]], path: Path) -> None:
    """A bar for each link and query, beside one for shipping everything."""
    import matplotlib.pyplot as plt

    size = (8, 1 + 2.5 * len(outcomes))
    figure, axes = plt.subplots(len(outcomes), 1, figsize=size, layout="constrained", squeeze=False)
    for (name, (planned, everything)), axis in zip(outcomes.items(), axes[:, 0], strict=True):
        links = _links(planned, everything)
        runs = {f"planned by {planned.deployment.planner}": planned}
        if everything is not None:
            runs["everything shipped to the sink"] = everything
        height = 0.8 / len(runs)
        for position, (label, run) in enumerate(runs.items()):
            places = [row + position * height for row in range(len(links))]
            axis.barh(places, [run.traffic(link).bytes for link in links], height, label=label)
        axis.set_yticks([row + height * (len(runs) - 1) / 2 for row in range(len(links))], links)
        axis.set_xlabel("bytes")
        axis.set_title(name)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    try:
        figure.savefig(path)
    except (OSError, ValueError) as error:
        raise FileError(f"cannot write the plot to {path}: {error}; check the path and its ending") from error
