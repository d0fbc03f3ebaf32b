"""Figures 8 to 11 of the PMJoin paper by running: tuples, bytes and processor time of partitioned joins, measured."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from matplotlib.axes import Axes

import braid
from braid.model.network.generators import fully_connected
from braid.planning.order.stream_join_opt import StreamJoinOpt
from braid.planning.partition.find import find_partitions
from braid.planning.partition.pmjoin import PMJoin
from braid.planning.planners import Planner
from braid.planning.problem import Problem
from braid.planning.solution.partitioned import PartitionedSolution
from braid.workloads.skewed import Spread
from experiments.pmjoin_attributes import CHOICES
from experiments.pmjoin_partitions import CASES, FUNCTIONS
from experiments.report import Report

STREAMS, VALUES, SECONDS, BATCH_ROWS = 4, 200, 30, 10_000
RATES, WINDOWS = (200, 2_000), (20, 150)
"""Tuples a second, and milliseconds: windows so short that a join makes fewer tuples than it gets."""
PARTS = (1, 2, 5, 20)
BY_STREAMS = (3, 4, 5)
PARTS_OF_MANY = 10
"""The parts for joins of several numbers of streams, and for joins on several attributes."""
CHAINS, CHAIN_VALUES = 3, (50, 200)


@dataclass(frozen=True)
class Measured:
    """What a plan expected to send per second, and what it sent: tuples and bytes; and the processor time it took."""

    planned: float
    tuples: float
    bytes: float
    processor: float
    results: int


@dataclass(frozen=True)
class Streams:
    """A query, its rows, and statistics with a histogram of each key."""

    text: str
    tables: Mapping[str, pa.Table]
    statistics: braid.Statistics

    def run(self, planner: str | Planner) -> Measured:
        began = time.process_time()
        simulation = braid.simulate(
            self.text,
            self.tables,
            fully_connected(len(self.tables)),
            sites={stream: f"n{number}" for number, stream in enumerate(self.tables)},
            planner=planner,
            cost="communication",
            statistics=self.statistics,
            batch_rows=BATCH_ROWS,
        )
        processor = time.process_time() - began
        rows, size = (sum(getattr(link, what) for link in simulation.links.values()) for what in ("rows", "bytes"))
        seconds = simulation.seconds
        return Measured(simulation.bill.total, rows / seconds, size / seconds, processor, simulation.results.num_rows)


@dataclass(frozen=True)
class Choosing:
    """`PMJoin` with another choice of the joins to partition."""

    choice: str
    name: str = "pmjoin"

    def plan(self, problem: Problem) -> PartitionedSolution:
        whole = StreamJoinOpt(self.name).plan(problem)
        candidates = find_partitions(problem, whole.tree)
        chosen = CHOICES[self.choice](problem, candidates, np.random.default_rng(1))
        planner = PMJoin(PARTS_OF_MANY, "rate")
        joins = [join for join in (planner.partition(whole, each) for each in chosen) if join is not None]
        return PartitionedSolution(whole, tuple(joins), whole.considered)


def run(report: Report) -> None:
    star(Spread(similar=False), STREAMS, seed=3).run("exact")  # The first run compiles what all others use.
    by_parts: dict[str, dict[str, list[Measured]]] = {}
    for case in report.progress(list(CASES), "cases"):
        streams = star(CASES[case], STREAMS, seed=3)
        whole = streams.run(PMJoin(1))
        by_parts[case] = {
            function: [whole, *(streams.run(PMJoin(parts, function)) for parts in PARTS[1:])] for function in FUNCTIONS
        }
    by_streams: dict[str, list[Measured]] = {"no partitions": [], **{function: [] for function in FUNCTIONS}}
    for count in report.progress(BY_STREAMS, "numbers of streams"):
        streams = star(CASES["RHS, DD"], count, seed=5)
        for name, measured in by_streams.items():
            planner = StreamJoinOpt() if name == "no partitions" else PMJoin(PARTS_OF_MANY, name)
            measured.append(streams.run(planner))
    by_choice: dict[str, list[Measured]] = {name: [] for name in CHOICES}
    for values in report.progress(CHAIN_VALUES, "data ranges"):
        queries = [chain(seed, values) for seed in range(CHAINS)]
        for name, measured in by_choice.items():
            measured.append(_mean([query.run(Choosing(name)) for query in queries]))

    report.say(
        f"Figures 8 and 9: {STREAMS} streams of {RATES[0]} to {RATES[1]:,} tuples a second, {VALUES} values, "
        f"{SECONDS} seconds under simulation, each stream at a site of its own. Tuples a second over all links, "
        "planned and measured; bytes a second; processor seconds of the whole run, planning included."
    )
    for case, by_function in by_parts.items():
        report.say(f"{case}:")
        _table(report, "parts", PARTS, by_function)
    report.say(f"Figure 10: by number of streams, {PARTS_OF_MANY} parts, different distributions, hot values anywhere.")
    _table(report, "streams", BY_STREAMS, by_streams)
    report.say(f"Figure 11: five streams joined in a chain on two attributes, mean of {CHAINS} queries.")
    _table(report, "data range", CHAIN_VALUES, by_choice)
    runs = [measured for by in (*by_parts.values(), by_streams, by_choice) for each in by.values() for measured in each]
    different = sum(len({each.results for run in by.values() for each in run}) > 1 for by in by_parts.values())
    report.say(
        "All runs of figures 8 and 9 on the same streams gave the same number of results."
        if not different
        else f"Runs on the same streams gave DIFFERENT numbers of results in {different} cases."
    )
    report.table(["", "paper", "measured"], _findings(by_parts, by_streams, by_choice, runs))
    report.say(
        "Tuples agree with the plans up to chance and to windows that are empty at first. Bytes do not follow tuples "
        "where few tuples are sent: each part is a stream of its own on its links, every batch of it has 700 bytes of "
        "Arrow schema and header, and one without rows, which only tells the watermark, about 200. So many parts cost "
        "bytes and processor time, however few tuples they send, and the best number of parts is far lower than "
        "tuples alone suggest. The paper's figure 9 measures routing alone; here each part has batches of its own. "
        "With similar distributions (SD) the four streams have nearly the same order by rate at every value, so one "
        "plan is best for all parts, and partitions save nothing; `pmjoin_partitions` plans more streams and values."
    )

    def draw(axes: list[Axes]) -> None:
        for axis, case in zip(axes, ("CHS, DD", "RHS, DD"), strict=False):
            for function in FUNCTIONS:
                axis.plot(PARTS, [each.tuples for each in by_parts[case][function]], marker="o", label=function)
            planned = [each.planned for each in by_parts[case]["rate"]]
            axis.plot(PARTS, planned, marker="x", label="rate, planned")
            axis.set(title=f"figure 8, {case}", xlabel="parts", ylabel="tuples/s sent", xscale="log")
        for case in CASES:
            axes[2].plot(PARTS, [each.bytes for each in by_parts[case]["rate"]], marker="o", label=case)
            axes[3].plot(PARTS, [each.processor for each in by_parts[case]["rate"]], marker="o", label=case)
        axes[2].set(title="bytes, rate-based", xlabel="parts", ylabel="bytes/s sent", xscale="log", yscale="log")
        axes[3].set(title="figure 9, rate-based", xlabel="parts", ylabel="processor seconds", xscale="log")
        for name, measured in by_streams.items():
            axes[4].plot(BY_STREAMS, [each.tuples for each in measured], marker="o", label=name)
        axes[4].set(title="figure 10", xlabel="streams", ylabel="tuples/s sent")
        for name, measured in by_choice.items():
            axes[5].plot(CHAIN_VALUES, [each.tuples for each in measured], marker="o", label=name)
        axes[5].set(title="figure 11", xlabel="data range", ylabel="tuples/s sent", xscale="log")

    report.plot(draw, 6)


def _findings(
    by_parts: Mapping[str, Mapping[str, Sequence[Measured]]],
    by_streams: Mapping[str, Sequence[Measured]],
    by_choice: Mapping[str, Sequence[Measured]],
    runs: Sequence[Measured],
) -> list[tuple[str, str, str]]:
    row = PARTS.index(5)

    def saved(kind: str, what: str) -> str:
        cases = [by for case, by in by_parts.items() if case.endswith(kind)]
        return " and ".join(f"{1 - getattr(by['rate'][row], what) / getattr(by['rate'][0], what):.0%}" for by in cases)

    rates, whole = by_streams["rate"], by_streams["no partitions"]
    pairs = zip(by_choice["heuristic"], by_choice["no partitions"], strict=True)
    chains = [1 - one.tuples / other.tuples for one, other in pairs]
    sent = [measured for measured in runs if measured.planned > 1]
    agree = float(np.median([abs(measured.tuples / measured.planned - 1) for measured in sent]))
    return [
        ("tuples saved by 5 rate-based parts: SD", "moderate", saved("SD", "tuples")),
        ("tuples saved by 5 rate-based parts: DD", "large", saved("DD", "tuples")),
        ("bytes saved by 5 rate-based parts: DD", "-", saved("DD", "bytes")),
        (
            "tuples saved by rate-based parts, by number of streams",
            "more with more streams",
            ", ".join(f"{1 - one.tuples / other.tuples:.0%}" for one, other in zip(rates, whole, strict=True)),
        ),
        ("tuples saved by the heuristic, several attributes", "some", ", ".join(f"{share:.0%}" for share in chains)),
        ("measured against planned tuples, median difference", "-", f"{agree:.0%}"),
    ]


def _table(report: Report, what: str, points: Sequence[int], by: Mapping[str, Sequence[Measured]]) -> None:
    header = [what]
    for name in by:
        header += [f"{name}: planned", "tuples", "bytes", "processor s"]
    rows = []
    for row, point in enumerate(points):
        cells: list[int | float | str] = [point]
        for measured in by.values():
            each = measured[row]
            cells += [each.planned, each.tuples, each.bytes, f"{each.processor:.1f}"]
        rows.append(cells)
    report.table(header, rows)


def _mean(runs: Sequence[Measured]) -> Measured:
    means = {
        what: float(np.mean([getattr(each, what) for each in runs]))
        for what in ("planned", "tuples", "bytes", "processor")
    }
    return replace(runs[0], **means)


def star(spread: Spread, count: int, seed: int) -> Streams:
    """Streams joined on one attribute, with windows so short that a join makes fewer tuples than it gets."""
    generator = np.random.default_rng(seed)
    shares = spread.draw(generator, count, VALUES)
    names = [f"S{number}" for number in range(count)]
    rates, windows = generator.uniform(*RATES, count), generator.uniform(*WINDOWS, count)
    tables = {name: _rows(generator, rate, {"k": row}) for name, rate, row in zip(names, rates, shares, strict=True)}
    sources = _sources(names, windows)
    conditions = " AND ".join(f"S0.k = {name}.k" for name in names[1:])
    columns = ", ".join(f"{name}.ts AS t{number}" for number, name in enumerate(names))
    return Streams(f"SELECT S0.k, {columns} FROM {sources} WHERE {conditions}", tables, _statistics(tables))


def chain(seed: int, values: int) -> Streams:
    """Five streams: three joined on one attribute, and two more on another."""
    generator = np.random.default_rng(seed)
    members = {"x": ("S0", "S1", "S2"), "y": ("S2", "S3", "S4")}
    columns: dict[str, dict[str, np.ndarray]] = {f"S{number}": {} for number in range(5)}
    for attribute, streams in members.items():
        shares = Spread(similar=False, contiguous=False).draw(generator, len(streams), values)
        for stream, row in zip(streams, shares, strict=True):
            columns[stream][attribute] = row
    rates, windows = generator.uniform(*RATES, 5), generator.uniform(*WINDOWS, 5)
    tables = {name: _rows(generator, rate, shares) for (name, shares), rate in zip(columns.items(), rates, strict=True)}
    sources = _sources(tables, windows)
    conditions = "S0.x = S1.x AND S1.x = S2.x AND S2.y = S3.y AND S3.y = S4.y"
    outputs = ", ".join(f"{name}.ts AS t{number}" for number, name in enumerate(tables))
    return Streams(f"SELECT {outputs} FROM {sources} WHERE {conditions}", tables, _statistics(tables))


def _sources(names: Iterable[str], windows: np.ndarray) -> str:
    pairs = zip(names, windows, strict=True)
    return ", ".join(f"{name} [RANGE {length:.0f} MILLISECONDS]" for name, length in pairs)


def _rows(generator: np.random.Generator, rate: float, shares: Mapping[str, np.ndarray]) -> pa.Table:
    rows = round(rate * SECONDS)
    times = np.sort(generator.integers(0, SECONDS * 1_000_000, rows))
    keys = {column: generator.choice(len(row), rows, p=row / row.sum()) for column, row in shares.items()}
    return pa.table({"ts": pa.array(times, pa.timestamp("us")), **keys})


def _statistics(tables: Mapping[str, pa.Table]) -> braid.Statistics:
    """What the streams are: their rates, and how many rows a second each value has."""
    histograms = {}
    for stream, table in tables.items():
        for column in table.column_names[1:]:
            values, counts = np.unique(table.column(column).to_numpy(), return_counts=True)
            histograms[f"{stream}.{column}"] = dict(zip(values.tolist(), (counts / SECONDS).tolist(), strict=True))
    rates = {stream: table.num_rows / SECONDS for stream, table in tables.items()}
    return braid.Statistics(rates=rates, histograms=histograms)
