"""The page and the picture of the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.nexmark.query import Impossible, Query
from benchmarks.nexmark.running import Outcome, Run

RESULTS = Path(__file__).parents[2] / "docs" / "results"
BRAID, TEXT, SPARK = "tab:blue", "tab:gray", "tab:orange"

HEADER = (
    "| query | asks for | Braid, rows/s | Spark, rows/s | Braid / Spark | results | differs from the public text |\n"
    "|---|---|---|---|---|---|---|"
)
JOIN_HEADER = (
    "| join | asks for | adapts, rows/s | order of the text, rows/s | Spark's chain, rows/s | adapts / Spark "
    "| work a row: adapts | order of the text | changes kept | results |\n"
    "|---|---|---|---|---|---|---|---|---|---|"
)


@dataclass(frozen=True)
class Joined:
    """The runs of a join of many streams: adapting, in the order of the text, and Spark's chain."""

    outcome: Outcome
    in_text_order: Run
    work: float
    """Probes and the rows that they look at, for each row, in one process."""
    text_work: float
    kept: int

    @property
    def runs(self) -> Mapping[str, tuple[str, Run]]:
        runs = {"adapts": (BRAID, self.outcome.braid), "order of the text": (TEXT, self.in_text_order)}
        if isinstance(self.outcome.spark, Run):
            runs["Spark's chain"] = (SPARK, self.outcome.spark)
        return runs


def line(query: Query | Impossible, outcome: Outcome | None) -> str:
    if isinstance(query, Impossible):
        return f"| {query.name} | {query.asks} | refused | - | - | - | {query.reason} |"
    assert outcome is not None
    theirs, ratio = "refuses, see below", "-"
    if isinstance(outcome.spark, Run):
        theirs, ratio = f"{outcome.spark.rate:,.0f}", f"{outcome.braid.rate / outcome.spark.rate:.1f}x"
    return (
        f"| {query.name} | {query.asks} | {outcome.braid.rate:,.0f} | {theirs} | {ratio} | {outcome.results:,} "
        f"| {query.rewritten} |"
    )


def join_line(joined: Joined) -> str:
    outcome = joined.outcome
    assert isinstance(outcome.spark, Run)
    rates = [outcome.braid.rate, joined.in_text_order.rate, outcome.spark.rate]
    figures = [*(f"{rate:,.0f}" for rate in rates), f"{rates[0] / rates[2]:.1f}x"]
    figures += [f"{joined.work:.1f}", f"{joined.text_work:.1f}", str(joined.kept), f"{outcome.results:,}"]
    return f"| {outcome.query.name} | {outcome.query.asks} | {' | '.join(figures)} |"


def draw(outcomes: Sequence[Outcome], joins: Sequence[Joined]) -> Figure:
    """Bars of all queries, and the rates of the joins of many streams from micro-batch to micro-batch."""
    figure = Figure(figsize=(13, 7), layout="constrained")
    grid = figure.add_gridspec(2, max(len(joins), 1), height_ratios=(3, 2))
    _draw_bars(figure.add_subplot(grid[0, :]), outcomes)
    for number, joined in enumerate(joins):
        _draw_course(figure.add_subplot(grid[1, number]), joined)
    return figure


def _draw_bars(axes: Axes, outcomes: Sequence[Outcome]) -> None:
    names = [outcome.query.name for outcome in outcomes]
    places = range(len(outcomes))
    axes.bar([place - 0.2 for place in places], [outcome.braid.rate for outcome in outcomes], 0.4, color=BRAID)
    rates = [outcome.spark.rate if isinstance(outcome.spark, Run) else 0 for outcome in outcomes]
    axes.bar([place + 0.2 for place in places], rates, 0.4, color=SPARK)
    for place, outcome in zip(places, outcomes, strict=True):
        if isinstance(outcome.spark, str):
            axes.text(place + 0.2, 0, "refuses", rotation=90, ha="center", va="bottom", fontsize=7, color=SPARK)
    axes.set_xticks(list(places), names)
    axes.set_ylabel("rows/s")
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.legend(["Braid", "Spark's own streaming"], fontsize=8)
    axes.set_title("Nexmark's queries", fontsize=10)


def _draw_course(axes: Axes, joined: Joined) -> None:
    for name, (colour, run) in joined.runs.items():
        axes.step(range(len(run.rates)), run.rates, where="mid", color=colour, label=name)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.set_title(f"{joined.outcome.query.name}: rows/s of each micro-batch", fontsize=8)
    axes.tick_params(labelsize=7)
    axes.legend(fontsize=6)


def page(lines: Sequence[str], join_lines: Sequence[str], outcomes: Sequence[Outcome], taken: str) -> str:
    refusals = "\n".join(
        f"- {outcome.query.name}: {outcome.spark}" for outcome in outcomes if isinstance(outcome.spark, str)
    )
    texts = "\n\n".join(f"{outcome.query.name}:\n\n```sql\n{outcome.query.text}\n```" for outcome in outcomes)
    return PAGE.format(
        taken=taken,
        lines="\n".join([HEADER, *lines]),
        refusals=refusals,
        joins="\n".join([JOIN_HEADER, *join_lines]),
        texts=texts,
    )


PAGE = """\
# Nexmark (`python -m benchmarks.nexmark`)

Persons, auctions and bids (1 : 3 : 46) with all their columns, by the public definition: hot sellers, auctions and
bidders, and rows out of order. Braid and Spark's own streaming read the same Parquet files in the same run and write
Parquet. The results of both equal DuckDB's. A rate is the number of rows in the streams that a query reads, divided by
the seconds of whole micro-batches; the first two micro-batches do not count. Spark's queries are SQL over the same
streams with watermarks. Their state is in memory, the faster of Spark's stores. Braid's state is in RocksDB.

{taken}

{lines}

Where Spark refuses a query, in its own words:

{refusals}

## Joins of four and five streams under changing rates

Every few micro-batches the rates change: from 25 new persons for each new auction to 25 new auctions for each new
person. Rows live for a second. Spark joins in the order of the text. Work counts probes and the rows that they look at,
for each input row, in one process: it is the same on every machine.

{joins}

![Rows per second](nexmark.png)

## The texts

{texts}
"""
