"""`braid bench`: how fast is it here?"""

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
        list[str] | None, typer.Argument(metavar="NAME", help="Which to run; all of them if none is named.")
    ] = None,
    list_them: Annotated[bool, typer.Option("--list", help="Name the benchmarks.")] = False,
    as_json: Json = False,
) -> None:
    """Run the benchmarks on this machine; tables go to docs/results."""
    checkout = Path(braid.__file__).parents[2]
    known = _benchmarks(checkout)
    if list_them:
        if as_json:
            print_json(known)
        else:
            typer.echo("\n".join(known))
        return
    for name in names or known:
        if name not in known:
            raise FileError(f"there is no benchmark '{name}'; {did_you_mean(name, known)}")
    for name in names or known:
        started = time.monotonic()
        # With --json, what a benchmark says on its way goes where progress goes.
        done = subprocess.run(
            [sys.executable, "-m", f"benchmarks.{name}"], cwd=checkout, stdout=sys.stderr if as_json else None
        )
        if done.returncode:
            raise RunError(f"the benchmark {name} failed; what it said is above")
        if as_json:
            page = checkout / "docs" / "results" / f"{name}.md"
            taken = round(time.monotonic() - started, 1)
            print_json({"benchmark": name, "seconds": taken, "page": str(page) if page.exists() else None})


def _benchmarks(checkout: Path) -> list[str]:
    """Those that are programs; they come with the sources, not with the installed package."""
    found = sorted((checkout / "benchmarks").glob("*.py"))
    if not found:
        raise FileError(
            "the benchmarks come with Braid's sources, not with the installed package; run this in a checkout"
        )
    return [path.stem for path in found if '__name__ == "__main__"' in path.read_text(encoding="utf-8")]
