"""`braid rescale`: give a checkpoint another number of shards."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from braid.cli.commands import Json, print_json, progress, screen, spark_session
from braid.errors import FileError
from braid.files.paths import checkpoint_at, resolved


def rescale(
    checkpoint: Annotated[str, typer.Argument(metavar="CHECKPOINT", help="The checkpoint of a query that is stopped.")],
    shards: Annotated[int, typer.Option(min=1, help="The new number of shards.")],
    to: Annotated[
        str | None,
        typer.Option(metavar="DIRECTORY", help="The directory of the new checkpoint; by default that of the old one."),
    ] = None,
    partitions: Annotated[
        int | None,
        typer.Option(min=1, help="The new value of spark.sql.shuffle.partitions; by default it stays as it is."),
    ] = None,
    rate: Annotated[
        list[str] | None,
        typer.Option(metavar="STREAM=ROWS", help="The rate that a stream is declared with; repeat it for each stream."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Divide the state of a checkpoint among another number of shards.

    The query goes on from the new checkpoint; no result is lost and none comes twice. The old checkpoint is only read.
    It is kept beside the new one, under another name, and can be removed once the query runs.
    """
    rates = _rates(rate or ())
    path = checkpoint_at(checkpoint)
    target = None if to is None else resolved(to, Path.cwd())
    with spark_session() as session:
        from braid.hosts.spark.driver.rescaling import rescale as rescale_checkpoint

        def say(text: str) -> None:
            progress.print(text, markup=False, soft_wrap=True)

        new = rescale_checkpoint(
            session.spark, path, shards, target=target, partitions=partitions, rates=rates, say=say
        )
    if as_json:
        print_json({"checkpoint": new})
        return
    screen.print(new, markup=False, soft_wrap=True)


def _rates(texts: Iterable[str]) -> dict[str, float]:
    rates = {}
    for text in texts:
        stream, _, rows = text.rpartition("=")
        try:
            rates[stream] = float(rows)
        except ValueError:
            raise FileError(f"--rate {text}: write the name of a stream, = and a number of rows") from None
        if not (stream and 0 < rates[stream] < float("inf")):
            raise FileError(f"--rate {text}: write the name of a stream, = and a number of rows above 0")
    return rates
