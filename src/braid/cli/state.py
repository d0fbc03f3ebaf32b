"""`braid state`: show what a checkpoint holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Table

from braid.cli.commands import Json, print_json, print_table, progress, screen, spark_session
from braid.files.paths import checkpoint_at
from braid.model.access import step_text


def state(
    checkpoint: Annotated[
        str,
        typer.Argument(metavar="CHECKPOINT", help="The checkpoint of a query: any directory that Spark can read."),
    ],
    as_json: Json = False,
) -> None:
    """Show what a checkpoint holds: the query, its plan, and the rows, bytes and watermark of each window."""
    path = checkpoint_at(checkpoint)
    with spark_session() as session:
        from braid.hosts.spark.driver.checkpoint_state import read_state

        with progress.status("reading the checkpoint"):
            saved = read_state(session.spark, path)
    if as_json:
        print_json(asdict(saved))
        return
    screen.print(saved.query.strip(), markup=False, soft_wrap=True)
    screen.print(f"batch {saved.batch}, {saved.shards} shard{'' if saved.shards == 1 else 's'}")
    if isinstance(saved.plan, Mapping):
        for head, sequence in saved.plan.items():
            screen.print(f"new rows of {head} probe {', '.join(map(step_text, sequence)) or 'nothing'}")
    else:
        screen.print(f"join tree {saved.plan}, with the results of each join kept", markup=False)
    table = Table("window of", "rows", "bytes", "segments", "watermark")
    for window in saved.windows:
        watermark = "none yet" if window.watermark is None else f"{window.watermark:%Y-%m-%d %H:%M:%S.%f}"
        table.add_row(window.source, f"{window.rows:,}", f"{window.bytes:,}", str(window.segments), watermark)
    print_table(table)
