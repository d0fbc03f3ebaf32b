"""`braid state`: what a checkpoint holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Table

from braid.cli.commands import Json, print_json, progress, screen, spark_session
from braid.files.paths import checkpoint_at


def state(
    checkpoint: Annotated[
        str,
        typer.Argument(metavar="CHECKPOINT", help="The checkpoint of a query: a directory, or any place Spark reads."),
    ],
    as_json: Json = False,
) -> None:
    """Show what a checkpoint holds: the query, its plan, and for each window rows, bytes and watermark."""
    place = checkpoint_at(checkpoint)
    with spark_session() as session:
        from braid.hosts.spark.driver.checkpoint_state import read_state

        with progress.status("reading the checkpoint"):
            found = read_state(session.spark, place)
    if as_json:
        print_json(asdict(found))
        return
    screen.print(found.query.strip(), markup=False, soft_wrap=True)
    screen.print(f"batch {found.batch}, {found.shards} shard{'' if found.shards == 1 else 's'}")
    if isinstance(found.plan, Mapping):
        for head, sequence in found.plan.items():
            screen.print(f"new rows of {head} probe {', '.join(sequence) or 'nothing'}")
    else:
        screen.print(f"joins as in {found.plan}, keeping what they find", markup=False)
    shown = Table("window of", "rows", "bytes", "segments", "watermark")
    for window in found.windows:
        watermark = "none yet" if window.watermark is None else f"{window.watermark:%Y-%m-%d %H:%M:%S.%f}"
        shown.add_row(window.source, f"{window.rows:,}", f"{window.bytes:,}", str(window.segments), watermark)
    screen.print(shown)
