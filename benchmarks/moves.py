"""Plans that move between sites while a query runs: what users see of it, and what it costs.

Run by `python -m benchmarks.moves`, or with the names of some parts: `python -m benchmarks.moves back_and_forth`. Each
part replaces its section of docs/results/moves.md; `--short` tries it on little data and prints the section. Sites
share one Spark on two cores. Results are checked before a figure is shown: none is missing, none comes twice.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console

from benchmarks import moves_adaptive, moves_back_and_forth, moves_simulated, moves_under_load, moves_windows
from braid.hosts.spark.driver.local_spark import local_spark

RESULTS = Path(__file__).parent.parent / "docs" / "results"
TITLE = "# Plans that move (`python -m benchmarks.moves`)"
PARTS: dict[str, Callable[[SparkSession, bool, Path], list[str]]] = {
    "under_load": moves_under_load.section,
    "windows": moves_windows.section,
    "back_and_forth": moves_back_and_forth.section,
    "near_capacity": moves_back_and_forth.section_near_capacity,
    "adaptive": moves_simulated.section,
    "adaptive_on_spark": moves_adaptive.section,
}
"""The parts by name, in the order of their sections on the page."""

console = Console()


def merged(page: str, section: list[str]) -> str:
    """The page with a section in place of the one of the same heading, or at its end."""
    title, *sections = page.split("\n## ")
    heading, text = section[0].removeprefix("## "), "\n".join(section).removeprefix("## ").rstrip() + "\n"
    headings = [found.split("\n")[0] for found in sections]
    if heading in headings:
        sections[headings.index(heading)] = text
    else:
        sections.append(text)
    return "\n\n## ".join(part.strip() for part in (title, *sections)) + "\n"


def main(arguments: list[str]) -> None:
    short = "--short" in arguments
    names = [argument for argument in arguments if argument != "--short"] or list(PARTS)
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        raise SystemExit(f"there is no part '{unknown[0]}'; the parts are {', '.join(PARTS)}")
    page = RESULTS / "moves.md"
    with tempfile.TemporaryDirectory() as directory:
        spark = local_spark(settings={"spark.driver.memory": "4g"}, log=Path(tempfile.gettempdir()) / "moves.log")
        for name in names:
            with console.status(name):
                section = PARTS[name](spark, short, Path(directory) if short else RESULTS)
            console.print(f"{name}: done", highlight=False)
            if short:
                print("\n".join(section))
            else:
                page.write_text(merged(page.read_text() if page.exists() else TITLE, section))


if __name__ == "__main__":
    main(sys.argv[1:])
