"""`braid experiments`: run the planning experiments of the papers, from a source checkout."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

import braid
from braid.cli.commands import Json
from braid.errors import FileError


def experiments(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="The experiments to run; all of them by default.")
    ] = None,
    list_names: Annotated[
        bool, typer.Option("--list", help="List the experiments with their subjects and exit.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run the planning experiments of the papers and write pages and plots to docs/results.

    Needs a checkout of Braid's sources.
    """
    raise typer.Exit(_main()(["--list"] if list_names else names or [], as_json))


def _main() -> Callable[[list[str], bool], int]:
    """The main function of the experiments. They write into a checkout, so they are not in the installed package."""
    checkout = Path(braid.__file__).parents[2]
    if not (checkout / "experiments" / "__main__.py").exists():
        raise FileError(
            "the experiments are not in the installed package, only in Braid's sources; run this in a checkout"
        )
    if str(checkout) not in sys.path:
        sys.path.insert(0, str(checkout))
    main: Callable[[list[str], bool], int] = import_module("experiments.__main__").main
    return main
