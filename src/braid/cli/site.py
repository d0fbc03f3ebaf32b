"""`braid site`: run one site of a network file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from braid.cli.commands import progress, spark_session
from braid.files.network import load_network

LOOK_SECONDS = 0.5
"""Seconds between two looks at what is deployed."""


def site(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A YAML file with a network, streams and queries.")],
    name: Annotated[str, typer.Option(help="The site of the network that this process runs.")],
) -> None:
    """Run one site of a network on Spark until you press Ctrl-C: its streams, and its part in all queries.

    Queries are deployed with `braid deploy FILE`, before or after the sites have started. A site that was stopped or
    killed goes on from its checkpoints when you start it again. `braid network --help` shows a file.
    """
    network = load_network(file)
    network.topology.position(name)
    with spark_session(dict(network.spark)) as session:
        from braid.hosts.spark.driver.site_process import SiteProcess

        process = SiteProcess(network, name, session.spark)
        try:
            progress.print(f"site {name} runs, with {', '.join(process.streams) or 'no streams of its own'}")
            while True:
                for query in process.look():
                    progress.print(f"site {name} takes part in {query}")
                time.sleep(LOOK_SECONDS)
        except KeyboardInterrupt:
            progress.print(f"site {name} stops; it goes on from here when it is started again")
            raise
        finally:
            process.stop()
