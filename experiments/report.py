"""The page that an experiment writes: tables and sentences, and a plot in a file beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from rich.console import Console
from rich.progress import track

LINES = cycler(color=["tab:blue", "tab:orange", "tab:green", "tab:red", "tab:purple", "tab:brown"]) + cycler(
    linestyle=["-", "--", "-.", ":", (0, (8, 2)), (0, (2, 1))]
)
"""Colors and dashes of lines: two lines on top of each other are both visible."""
RESULTS = Path(__file__).parent.parent / "docs" / "results"
Item = TypeVar("Item")
Cell = str | int | float | None


@dataclass
class Report:
    """One page. `name` is the name of its files, and `title` says which figures of which paper it reproduces.

    `command` is the command that writes the page again; by default `braid experiments` with the name.
    """

    name: str
    title: str
    command: str = ""
    lines: list[str] = field(default_factory=list)
    quiet: bool = False

    def say(self, sentence: str) -> None:
        self.lines += [sentence, ""]

    def table(self, header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
        self.lines.append(f"| {' | '.join(header)} |")
        self.lines.append(f"|{'---|' * len(header)}")
        self.lines += [f"| {' | '.join(map(_shown, row))} |" for row in rows]
        self.lines.append("")

    def plot(self, draw: Callable[[list[Axes]], None], panels: int = 1, part: str = "") -> None:
        """Draw the panels, and save the picture beside the page; `part` names one of several pictures."""
        name = f"{self.name}_{part}" if part else self.name
        figure = plt.figure(figsize=(5.5 * min(panels, 2), 3.8 * -(-panels // 2)), layout="constrained")
        axes = [figure.add_subplot(-(-panels // 2), min(panels, 2), number + 1) for number in range(panels)]
        for panel in axes:
            panel.set_prop_cycle(LINES)
        draw(axes)
        for panel in axes:
            panel.grid(alpha=0.3)
            locator = panel.xaxis.get_major_locator()
            if isinstance(locator, MaxNLocator):
                locator.set_params(integer=True)
            if panel.get_legend_handles_labels()[0]:
                panel.legend(fontsize=8)
        RESULTS.mkdir(parents=True, exist_ok=True)
        # Without a version or date in the file, the same results give the same file.
        figure.savefig(RESULTS / f"{name}.png", dpi=110, metadata={"Software": None})
        plt.close(figure)
        self.lines += [f"![{self.title}]({name}.png)", ""]

    def progress(self, items: Sequence[Item], what: str) -> Iterator[Item]:
        """The items, with a progress bar."""
        yield from track(items, what, disable=self.quiet, transient=True)

    @property
    def page(self) -> Path:
        return RESULTS / f"{self.name}.md"

    def write(self) -> None:
        RESULTS.mkdir(parents=True, exist_ok=True)
        body = "\n".join(self.lines).rstrip()
        command = self.command or f"braid experiments {self.name}"
        text = f"# {self.title}\n\nBy `{command}`.\n\n{body}\n"
        self.page.write_text(text, encoding="utf-8")
        if not self.quiet:
            Console().print(text, markup=False)


def _shown(cell: Cell) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, float):
        return f"{cell:,.4g}"
    return f"{cell:,}" if isinstance(cell, int) else cell


def percent(share: float) -> str:
    return f"{share:+.0%}"
