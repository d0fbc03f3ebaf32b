"""`braid network`: run all sites of a network file on this machine, or show how far they are."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.live import Live
from rich.table import Table

from braid.cli.commands import Json, debugging, print_json, print_table, progress, screen
from braid.cli.deploy import deploy_queries
from braid.errors import FileError, RunError
from braid.files.network import NetworkFile, load_network

if TYPE_CHECKING:
    from braid.hosts.network_status import ChannelStatus

STATUS = "status"

END_SECONDS = 30
"""How long a site may take to stop."""

SHOW_SECONDS = 1.0
"""Seconds between two looks at the channels."""


def network(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A YAML file with a network, streams and queries.")],
    status_file: Annotated[Path | None, typer.Argument(metavar="", hidden=True)] = None,
    as_json: Json = False,
) -> None:
    """Run all sites of a network file on this machine, each as a process with a Spark of its own, until Ctrl-C.

    `braid network status FILE` shows instead what the channels of the network have carried, and what waits in them.

    On several machines run `braid site FILE --name SITE` at each, and `braid deploy FILE` once. A file:

    \b
    topology:  {links: [{source: paris, target: lyon, latency: 0.004}]}
    directory: state
    streams:
      flights: {site: paris, format: json, path: flights, schema: {ts: TIMESTAMP, num: INT, gate: STRING}}
      bags:    {site: lyon, format: json, path: bags, schema: {ts: TIMESTAMP, flight: INT}, lateness: 5 seconds}
    queries:
      gates:
        sql: SELECT f.gate FROM flights [RANGE 5 MINUTES] f, bags [RANGE 1 MINUTE] b WHERE f.num = b.flight
        sink: lyon
        output: {format: parquet, path: results}
    """
    if file == STATUS and status_file is not None:
        _print_status(load_network(status_file), as_json)
        return
    if status_file is not None:
        raise FileError(
            f"'{file}' is no command of braid network; write braid network FILE or braid network status FILE"
        )
    path = Path(file)
    content = load_network(path)
    sinks = {query.sink for query in content.queries if query.sink is not None}
    with _sites(path) as sites:
        sites.start({entry.site for entry in content.streams} | sinks)
        with progress.status("starting the sites and deploying the queries"):
            deployed = sites.while_alive(lambda: deploy_queries(content, 0))
        sites.start({site for query in deployed for site in query.sites})
        with Live(console=screen, refresh_per_second=2, transient=not screen.is_terminal) as live:
            while True:
                sites.check()
                live.update(_table(_statuses(content)))
                time.sleep(SHOW_SECONDS)


class SiteProcesses:
    """The processes of sites, by name."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, names: set[str]) -> None:
        """Start the sites that do not run yet."""
        options = ["--debug"] if debugging.get() else []
        for name in sorted(names - self._processes.keys()):
            command = [sys.executable, "-m", "braid", *options, "site", str(self._file), "--name", name]
            self._processes[name] = subprocess.Popen(command)

    def check(self) -> None:
        """Raise an error if a site has ended by itself."""
        for name, process in self._processes.items():
            code = process.poll()
            if code is not None:
                raise RunError(f"site '{name}' has ended with exit code {code}; see its last message above")

    def while_alive(self, attempt: Any) -> Any:
        """The result of a call, which is repeated as long as it fails because sites are still starting."""
        while True:
            self.check()
            try:
                return attempt()
            except RunError:
                time.sleep(SHOW_SECONDS)

    def stop(self) -> None:
        for process in self._processes.values():
            if process.poll() is None:
                process.terminate()
        for name, process in self._processes.items():
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                progress.print(f"site {name} does not stop and is killed; it goes on from its last checkpoint")
                process.kill()
                process.wait()


@contextmanager
def _sites(file: Path) -> Iterator[SiteProcesses]:
    sites = SiteProcesses(file)
    try:
        yield sites
    finally:
        sites.stop()


def _statuses(content: NetworkFile) -> list[ChannelStatus]:
    from braid.hosts.network_channels import channels_of_file
    from braid.hosts.network_status import channel_statuses

    return channel_statuses(channels_of_file(content))


def _table(statuses: list[ChannelStatus]) -> Table:
    table = Table("query", "channel", "at", "load", "to", "rows", "bytes", "watermark", "waiting")
    for status in statuses:
        table.add_row(
            status.deployment,
            status.channel,
            status.site,
            "-" if status.load is None else f"{status.load:.2g}",
            ", ".join(status.readers) or "results",
            f"{status.rows:,}",
            f"{status.bytes:,}",
            status.reached,
            f"{status.waiting_rows:,} rows",
        )
    return table


def _print_status(content: NetworkFile, as_json: bool) -> None:
    statuses = _statuses(content)
    if as_json:
        print_json([status.to_json() for status in statuses])
    elif not statuses:
        screen.print("nothing is deployed; braid deploy FILE does it")
    else:
        print_table(_table(statuses))
