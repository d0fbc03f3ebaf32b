"""The picture of the README: a plan that changes under load, on the workload of the demo.

Run by `python -m benchmarks.plan_change`. Work is counted, not timed, so that the same input gives the same picture:
the probes and matches per input row, under a plan that adapts and under the plan from before the burst.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
from matplotlib import rc_context
from matplotlib.figure import Figure

from braid.adapt.adaptation import Adaptation
from braid.engine.engine import Engine
from braid.engine.segment import Segment
from braid.language import parse
from braid.model.plan import Plan
from braid.model.stream import Stream
from braid.planning.lowering.one_site import lower
from braid.runtime.observing import Watch
from braid.workloads.airline_day import MICROSECONDS, QUERIES, START, Airline, Burst

PICTURE = Path(__file__).parent.parent / "docs" / "images" / "plan-change.svg"
MINUTES = 40
BURST = Burst("SALES", 15, 28, times=20)


def run(first_plan: Mapping[str, tuple[str, ...]] | None, adapt: bool) -> tuple[list[float], Adaptation]:
    """The work per input row in every minute, and the adaptation with its plan changes."""
    airline = Airline(burst=BURST)
    streams = {name: Stream(name, table.schema, "ts") for name, table in airline.minute(0).items()}
    query = parse(QUERIES["monitoring"], streams)
    plan = Plan.of(query, first_plan)
    engine, adaptation = Engine(lower(plan)), Adaptation(plan, adapt)
    work = []
    for minute in range(MINUTES):
        tables = airline.minute(minute)
        begin = START + minute * MICROSECONDS
        segments = [_segment(source.declared.name, tables, begin) for source in query.sources]
        watch = Watch(engine)
        engine.step(segments)
        observation = watch.observe(segments)
        work.append(observation.work / observation.rows(query.aliases))
        change = adaptation.observe(observation, minute * 60.0, minute)
        if change is not None:
            engine.change(lower(change.after), None if change.against is None else lower(change.against))
    return work, adaptation


def _segment(stream: str, tables: Mapping[str, pa.Table], watermark: int) -> Segment:
    (batch,) = tables[stream].combine_chunks().to_batches()
    return Segment(stream, batch, watermark)


def draw(path: Path) -> int:
    """Write the picture and return the number of plan changes."""
    adapted, adaptation = run(None, adapt=True)
    changes = adaptation.history.changes
    plans_before_burst = [change.after for change in changes if change.batch < BURST.first]
    fixed, _ = run(plans_before_burst[-1] if plans_before_burst else None, adapt=False)
    figure = Figure(figsize=(9, 4.6), layout="constrained")
    load, cost = figure.subplots(2, 1, sharex=True, height_ratios=(1, 2))
    sales = [Airline(burst=BURST).minute(minute)["SALES"].num_rows for minute in range(MINUTES)]
    load.fill_between(range(MINUTES), sales, step="post", alpha=0.4, color="tab:red")
    load.set_ylabel("sales a minute")
    cost.step(range(MINUTES), fixed, where="post", color="gray", label="the plan from before the burst, kept")
    cost.step(range(MINUTES), adapted, where="post", color="tab:blue", label="the plan adapts")
    highest = max(*fixed, *adapted)
    for change in changes:
        heads = [head for head, rest in change.after.items() if rest != change.before[head]]
        text = "\n".join(f"{head}: {', '.join(change.after[head])}" for head in heads)
        cost.axvline(change.batch + 1, color="tab:blue", linestyle=":")
        cost.annotate(text, (change.batch + 1.2, highest), va="top", fontsize=8, color="tab:blue")
    cost.set_ylim(0, highest * 1.05)
    cost.set_xlabel("minutes of an airline's day; dotted: the plan changes, and what its heads probe then")
    cost.set_ylabel("probes and matches\nfor each row in")
    cost.legend(loc=(0.02, 0.5), fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    with rc_context({"svg.hashsalt": "braid"}):
        figure.savefig(path, metadata={"Date": None})
    return len(changes)


if __name__ == "__main__":
    print(f"{draw(PICTURE)} plan changes, drawn in {PICTURE}")
