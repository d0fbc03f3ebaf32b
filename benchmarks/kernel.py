"""The join kernel on one core, compared with DuckDB joining the whole input offline on one thread.

Run by `make bench`. Rates are input rows per second; Braid's rate is that of the last batches, whose windows are full.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import numba
import numpy as np
import pyarrow as pa
from rich.console import Console

from benchmarks.workload import SECOND, Workload, one_key, uniform, words, zipf
from braid.engine.engine import Engine
from braid.engine.segment import Segment
from braid.language import parse
from braid.model.plan import Plan
from braid.model.stream import Stream
from braid.planning.lowering.one_site import lower
from braid.testing import assert_same_rows

RESULTS = Path(__file__).parent.parent / "docs" / "results" / "kernel.md"
BASE = "4 streams, one key, 10 s windows"
LONG = "the same, 100 s windows, keys as rare"


def workloads() -> list[Workload]:
    chain = {
        "a": {"x": uniform(500_000)},
        "b": {"x": uniform(500_000), "y": uniform(500_000)},
        "c": {"y": uniform(500_000)},
    }
    skewed, condition = one_key(3, uniform(500_000))
    skewed["s0"] = {"k": zipf(500_000, 1.2)}
    return [
        Workload(BASE, *one_key(4, uniform(500_000))),
        Workload(LONG, *one_key(4, uniform(5_000_000)), window_seconds=100, seconds=110),
        Workload("8 streams", *one_key(8, uniform(500_000))),
        Workload("16 streams", *one_key(16, uniform(500_000))),
        Workload("chain a(x) b(x, y) c(y)", chain, "a.x = b.x AND b.y = c.y"),
        Workload("3 streams, one with a zipf 1.2 key", skewed, condition),
        Workload("string key", *one_key(4, words(500_000))),
    ]


@dataclass(frozen=True)
class Outcome:
    """Rates in rows per second; `peer_rate` is DuckDB's, None where it was not measured."""

    workload: Workload
    rate: float
    results: int
    peer_rate: float | None


def measure(workload: Workload) -> Outcome:
    """Run both on the same input and compare the results. Where DuckDB would take hours, compare on 1% of the rows."""
    too_large_for_duckdb = workload.window_seconds > 10 or len(workload.columns) > 8
    if too_large_for_duckdb:
        _compare(replace(workload, rows=workload.rows // 100))
        rate, result = _run_braid(workload, workload.batches())
        return Outcome(workload, rate, result.num_rows, None)
    return _compare(workload)


def _compare(workload: Workload) -> Outcome:
    batches = workload.batches()
    rate, result = _run_braid(workload, batches)
    peer_rate, expected = _run_duckdb(workload, batches)
    assert_same_rows(result, expected)
    return Outcome(workload, rate, result.num_rows, peer_rate)


def _run_braid(workload: Workload, batches: list[dict[str, pa.RecordBatch]]) -> tuple[float, pa.Table]:
    streams = {name: Stream(name, batch.schema, "ts") for name, batch in batches[0].items()}
    engine = Engine(lower(Plan.in_text_order(parse(workload.text, streams))))
    results, seconds = [], []
    for second, batch in enumerate(batches):
        segments = [Segment(name, rows, second * SECOND) for name, rows in batch.items()]
        start = time.perf_counter()
        results += engine.step(segments)
        seconds.append(time.perf_counter() - start)
    seconds_with_full_windows = seconds[-workload.measured :]
    rows = workload.rows * len(workload.columns)
    return rows / float(np.median(seconds_with_full_windows)), pa.Table.from_batches(results, engine.schema)


def _run_duckdb(workload: Workload, batches: list[dict[str, pa.RecordBatch]]) -> tuple[float, pa.Table]:
    connection = duckdb.connect(config={"threads": 1})
    for name in workload.columns:
        connection.register(f"{name}_input", pa.Table.from_batches([batch[name] for batch in batches]))
        connection.execute(f"CREATE TABLE {name} AS FROM {name}_input")
    start = time.perf_counter()
    result = connection.sql(workload.offline).to_arrow_table()
    elapsed = time.perf_counter() - start
    return workload.rows * workload.seconds * len(workload.columns) / elapsed, result


def _markdown(outcomes: list[Outcome]) -> str:
    """The table as Markdown."""
    lines = [
        "| workload | Braid, rows/s | DuckDB offline, rows/s | Braid / DuckDB | results per row |",
        "|---|---|---|---|---|",
    ]
    for outcome in outcomes:
        workload, peer = outcome.workload, outcome.peer_rate
        rows = workload.rows * workload.seconds * len(workload.columns)
        lines.append(
            f"| {workload.name} | {outcome.rate:,.0f} | {'-' if peer is None else f'{peer:,.0f}'} "
            f"| {'-' if peer is None else f'{outcome.rate / peer:.2f}'} | {outcome.results / rows:.2f} |"
        )
    rates = {outcome.workload.name: outcome.rate for outcome in outcomes}
    if BASE in rates and LONG in rates:
        lines += [
            "",
            f"Windows ten times as long: {rates[BASE] / rates[LONG]:.2f} times the cost per row.",
        ]
    return "\n".join(lines)


def main() -> None:
    console = Console()
    numba.set_num_threads(1)
    pa.set_cpu_count(1)
    words_of_names = sys.argv[1:]
    chosen = [
        workload
        for workload in workloads()
        if not words_of_names or any(word in workload.name for word in words_of_names)
    ]
    with console.status("compiling"):
        _run_braid(chosen[0], chosen[0].batches()[:2])
    outcomes = []
    for workload in chosen:
        with console.status(workload.name):
            outcomes.append(measure(workload))
        console.print(f"{workload.name}: {outcomes[-1].rate / 1e6:.2f} M rows/s")
    text = _markdown(outcomes)
    console.print(text, markup=False)
    if not words_of_names:
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        RESULTS.write_text(f"# The join kernel, one core (`make bench`)\n\n{text}\n")


if __name__ == "__main__":
    main()
