"""`braid experiments`: the papers' figures again, by Braid's planners."""

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
        list[str] | None, typer.Argument(metavar="NAME", help="Which to run; all of them if none is named.")
    ] = None,
    list_them: Annotated[bool, typer.Option("--list", help="Name the experiments and what each is about.")] = False,
    as_json: Json = False,
) -> None:
    """Run the papers' planning experiments; pages and plots go to docs/results."""
    raise typer.Exit(_main()(["--list"] if list_them else names or [], as_json))


def _main() -> Callable[[list[str], bool], int]:
    """The experiments are no part of the installed package: they write into the checkout that they are in."""
    checkout = Path(braid.__file__).parents[2]
    if not (checkout / "experiments" / "__main__.py").exists():
        raise FileError(
            "the experiments come with Braid's sources, not with the installed package; run this in a checkout"
        )
    if str(checkout) not in sys.path:
        sys.path.insert(0, str(checkout))
    main: Callable[[list[str], bool], int] = import_module("experiments.__main__").main
    return main
