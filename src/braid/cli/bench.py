"""`braid bench`: run the benchmarks of a source checkout."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

import braid
from braid.cli.commands import Json, print_json
from braid.errors import FileError, RunError, did_you_mean


def bench(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="The benchmarks to run; all of them by default.")
    ] = None,
    list_names: Annotated[bool, typer.Option("--list", help="List the benchmarks and exit.")] = False,
    as_json: Json = False,
) -> None:
    """Run the benchmarks on this machine and write their tables to docs/results.

    Needs a checkout of Braid's sources.
    """
    checkout = Path(braid.__file__).parents[2]
    known = _benchmarks(checkout)
    if list_names:
        if as_json:
            print_json(known)
        else:
            typer.echo("\n".join(known))
        return
    for name in names or known:
        if name not in known:
            raise FileError(f"there is no benchmark '{name}'; {did_you_mean(name, known)}")
    for name in names or known:
        _run(name, checkout, as_json)


def _run(name: str, checkout: Path, as_json: bool) -> None:
    started = time.monotonic()
    # With --json, standard output is for JSON only: what the benchmark prints goes to standard error.
    benchmark = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{name}"], cwd=checkout, stdout=sys.stderr if as_json else None
    )
    if benchmark.returncode:
        raise RunError(f"the benchmark {name} failed; its output is above")
    if as_json:
        page = checkout / "docs" / "results" / f"{name}.md"
        seconds = round(time.monotonic() - started, 1)
        print_json({"benchmark": name, "seconds": seconds, "page": str(page) if page.exists() else None})


def _benchmarks(checkout: Path) -> list[str]:
    """The modules and packages in benchmarks/ that are programs."""
    modules = sorted((checkout / "benchmarks").glob("*.py"))
    if not modules:
        raise FileError(
            "the benchmarks are not in the installed package, only in Braid's sources; run this in a checkout"
        )
    programs = [path.stem for path in modules if '__name__ == "__main__"' in path.read_text(encoding="utf-8")]
    packages = [path.parent.name for path in (checkout / "benchmarks").glob("*/__main__.py")]
    return sorted([*programs, *packages])
