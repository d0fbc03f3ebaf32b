"""Changing the plan of a long join: every transition strategy on the experiments of the JISC paper (section 6).

Run by `python -m benchmarks.transition`, on one core. All streams are joined on one key; windows hold `ROWS` rows. The
results of the strategies are compared before a figure is shown; a time is the least of several runs.

Two more are measured beside the strategies. Braid's probe sequences keep no combinations, so a change has no state to
complete, and they first check whether a row has a match in every window. A tree that never changes is a lower limit for
all strategies that keep combinations. `stairs` and its just-in-time variant are Moving State and JISC here (see
`braid.engine.transition.stairs`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from experiments.report import Report
from matplotlib.axes import Axes

from benchmarks.long_join import FILLING, ROWS, SEQUENCES, STEP, Input, Run, best_case, drawn, each_once, worst_case
from braid.testing import assert_same_rows

JOINS = 20
UNCHANGED = "unchanged"
NAMES = {
    "jisc": "JISC",
    "parallel_track": "Parallel Track",
    "moving_state": "Moving State",
    "cacq": "CACQ",
    SEQUENCES: "probe sequences",
    UNCHANGED: "no change",
}
NORMAL_NAMES = NAMES | {UNCHANGED: "a tree that never changed", "jisc": "JISC, long after a change"}
REPEATED = 3
"""Runs of each measurement; the fastest counts."""

WORKLOADS = {"one match in every window": each_once, "one match on average": drawn}


def check(results: Mapping[str, pa.Table], not_empty: bool = True) -> None:
    """Check that all results are equal and, with `not_empty`, that there are any."""
    reference = next(iter(results.values()))
    assert reference.num_rows or not not_empty, "there are no results to compare"
    for name, table in results.items():
        assert_same_rows(table, reference, message=name)


def migration(data: Input, kind: str, strategy: str) -> tuple[float, pa.Table]:
    """The seconds for one window of rows after a change, while Parallel Track runs both plans, and the results."""
    transition = best_case(data.names) if kind == "best case" else worst_case(data.names)
    run = Run(data, transition.before, "jisc" if strategy == UNCHANGED else strategy)
    seconds = 0.0 if strategy == UNCHANGED else run.change(transition.after)
    return seconds + run.steps(ROWS // STEP), run.results


def during_a_change(report: Report) -> None:
    """One window of rows after a change, by the number of joins."""
    counts = (4, 8, 12, 16, 20)
    times: dict[tuple[str, str], list[float]] = {}
    for kind in ("best case", "worst case"):
        for joins in report.progress(counts, f"change of plan, {kind}"):
            data = Input(joins, ROWS // STEP)
            runs = {strategy: [migration(data, kind, strategy) for _ in range(REPEATED)] for strategy in NAMES}
            check({strategy: repeated[0][1] for strategy, repeated in runs.items()})
            for strategy, repeated in runs.items():
                times.setdefault((kind, strategy), []).append(min(seconds for seconds, _ in repeated))
        report.say(f"## While the plan changes, {kind} (figures 7 and 8)")
        report.say(
            f"Seconds to process one window of rows of every stream right after the change, in steps of {STEP} "
            "rows of each stream. All strategies gave the same results."
        )
        report.table(
            ["joins", *NAMES.values(), "Parallel Track / JISC", "CACQ / JISC", "Parallel Track / no change"],
            [
                [
                    joins,
                    *(round(times[kind, strategy][position], 2) for strategy in NAMES),
                    round(times[kind, "parallel_track"][position] / times[kind, "jisc"][position], 2),
                    round(times[kind, "cacq"][position] / times[kind, "jisc"][position], 2),
                    round(times[kind, "parallel_track"][position] / times[kind, UNCHANGED][position], 2),
                ]
                for position, joins in enumerate(counts)
            ],
        )

    def draw(axes: list[Axes]) -> None:
        for kind, axis in zip(("best case", "worst case"), axes, strict=True):
            for strategy, name in NAMES.items():
                axis.plot(counts, times[kind, strategy], marker="o", label=name)
            axis.set(title=f"{kind}: one window after a change", xlabel="joins", ylabel="seconds", ylim=(0, None))

    report.plot(draw, 2)
    report.say(
        "In the paper JISC is up to ten times as fast as Parallel Track, and faster in the worst case too. Here "
        "Parallel Track only runs two plans. It compares ids to see whether a result consists of new rows only "
        "and whether an old plan has ended, where the paper's version looks for duplicates and searches its "
        "states. The last column shows the effect: apart from noise, both plans together cost at most twice as "
        "much as a plan that never changes, and no strategy that keeps combinations is faster than such a plan. "
        "So in a single change JISC cannot be ahead by more than that factor; where changes overlap it can (see "
        "the last table)."
    )


def normal_times(data: Input, steps: int) -> dict[str, float]:
    """The median seconds of a step of each variant. They run in turn, on the same rows."""
    transition = worst_case(data.names)
    runs = {
        UNCHANGED: Run(data, transition.after, "jisc"),
        "jisc": Run(data, transition.before, "jisc"),
        "cacq": Run(data, transition.after, "cacq"),
        SEQUENCES: Run(data, transition.after, SEQUENCES),
    }
    runs["jisc"].change(transition.after)
    for run in runs.values():
        run.steps(len(data.batches) - FILLING - steps)
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    order = list(runs)
    for _ in range(steps):
        # A variant that fills the processor's cache slows down the next one, so the order rotates.
        order.append(order.pop(0))
        for name in order:
            seconds[name].append(runs[name].step())
    check({name: run.results for name, run in runs.items()}, not_empty=data.matched)
    return {name: float(np.median(times)) for name, times in seconds.items()}


def without_a_change(report: Report) -> None:
    """A tree that never changed, one long after a change, CACQ and probe sequences, by the size of a step."""
    rows: list[list[Any]] = []
    sizes = (10, 100, 1_000, ROWS)
    measured_for: dict[str, list[dict[str, float]]] = {workload: [] for workload in WORKLOADS}
    for workload, keys in WORKLOADS.items():
        for step in report.progress(sizes, f"normal operation, {workload}"):
            # The measured steps begin when all rows from before the change have left the windows.
            measured = max(24, min(40, 4 * ROWS // step))
            data = Input(JOINS, 2 * ROWS // step + measured, step=step, keys=keys)
            times = normal_times(data, measured)
            measured_for[workload].append(times)
            rows.append(
                [
                    workload,
                    step,
                    *(round(1e3 * seconds, 1) for seconds in times.values()),
                    round(times["jisc"] / times[UNCHANGED], 2),
                    round(times["cacq"] / times["jisc"], 2),
                ]
            )
    report.say("## Normal operation (figure 9)")
    report.say(f"{JOINS} joins, full windows, median milliseconds of a step.")
    report.table(
        [
            "a row has",
            "rows of each stream in a step",
            "a tree that never changed",
            "JISC, long after a change",
            "CACQ",
            "probe sequences",
            "JISC / tree",
            "CACQ / JISC",
        ],
        rows,
    )

    def draw(axes: list[Axes]) -> None:
        for (workload, times), axis in zip(measured_for.items(), axes, strict=True):
            for strategy in times[0]:
                per_row = [1e6 * step[strategy] / size / (JOINS + 1) for step, size in zip(times, sizes, strict=True)]
                axis.loglog(sizes, per_row, marker="o", label=NORMAL_NAMES[strategy])
            axis.set(title=workload, xlabel="rows of each stream in a step", ylabel="microseconds a row")

    report.plot(draw, 2, "normal")
    report.say(
        "In the paper JISC is twice as fast as CACQ, which probes every window for each row and sends each row "
        "through an eddy in between, one by one. Here too trees probe half as often, and a join of a tree handles "
        "the new rows of all streams below it at once. But CACQ's eddy also handles all rows of a stream in a "
        "step together, and a tree stores every combination that it finds. So JISC is as far ahead as in the "
        "paper where steps are small, which is what the paper measures, and less where they are large."
    )


def first_result(report: Report) -> None:
    """The latency after a change, by the size of the windows."""
    measured = {}
    hashed, looped = (1_000, 3_000, 10_000, 30_000, 100_000), (100, 300, 1_000, 3_000)
    for theta, joins, sizes in ((False, JOINS, hashed), (True, 4, looped)):
        latencies: dict[str, list[float]] = {}
        for size in report.progress(sizes, "latency, nested loops" if theta else "latency, hash joins"):
            data = Input(joins, 1, size, theta=theta)
            transition = worst_case(data.names)
            results = {}
            for strategy in ("jisc", "moving_state", UNCHANGED):
                waits = []
                for _ in range(REPEATED):
                    run = Run(data, transition.before, "jisc" if strategy == UNCHANGED else strategy)
                    change = 0.0 if strategy == UNCHANGED else run.change(transition.after)
                    waits.append(change + run.step())
                latencies.setdefault(strategy, []).append(min(waits))
                results[strategy] = run.results
            check(results)
        measured[theta] = (sizes, latencies)
        kind = "nested loops" if theta else "hash joins"
        report.say(f"## Latency of a change, {kind} (figure 10)")
        report.say(
            f"{joins} joins, worst case. Seconds from the change until all results of the next {STEP} rows of each "
            "stream are there."
        )
        report.table(
            ["rows in a window", "JISC", "Moving State", "no change", "JISC / no change", "Moving State / JISC"],
            [
                [
                    size,
                    *(round(wait, 4) for wait in waits),
                    round(waits[0] / waits[2], 1),
                    round(waits[1] / waits[0], 1),
                ]
                for size, *waits in zip(sizes, *latencies.values(), strict=True)
            ],
        )

    def draw(axes: list[Axes]) -> None:
        for theta, axis in zip((False, True), axes, strict=True):
            sizes, latencies = measured[theta]
            for strategy, seconds in latencies.items():
                axis.loglog(sizes, seconds, marker="o", label=NAMES[strategy])
            title = "nested loops" if theta else "hash joins"
            axis.set(title=f"first rows after a change, {title}", xlabel="rows in a window", ylabel="seconds")

    report.plot(draw, 2, "latency")
    report.say(
        "As in the paper, Moving State delays all results until it has joined whole windows again. JISC takes a "
        "small multiple of the time of an ordinary step; with nested loops that time grows with the window."
    )


def frequency(report: Report) -> None:
    """The same rows with more or fewer changes."""
    intervals = (1, 5, 20, 80, 160)
    total = 2 * max(intervals)
    data = Input(JOINS, total)
    strategies = ("jisc", "parallel_track", "cacq", SEQUENCES)
    times: dict[str, list[dict[str, float]]] = {}
    for transition in (best_case(data.names), worst_case(data.names)):
        for steps in report.progress(intervals, f"changes, {transition.name}"):
            seconds, results = {}, {}
            for strategy in strategies:
                run = Run(data, transition.before, strategy)
                orders = [transition.after, transition.before]
                seconds[strategy] = sum(
                    run.change(orders[number % 2]) + run.steps(steps) for number in range(total // steps)
                )
                results[strategy] = run.results
            check(results)
            times.setdefault(transition.name, []).append(seconds)
    between = [steps * data.rows_per_step for steps in intervals]
    report.say("## Changes that follow each other (figures 11 and 12)")
    report.say(
        f"{JOINS} joins, {total} steps with full windows, and a change after every given number of rows. Total "
        f"seconds. All windows together hold {ROWS * len(data.names):,} rows: changes with fewer rows between them "
        "overlap."
    )
    report.table(
        ["", "rows between changes", *(NAMES[strategy] for strategy in strategies), "Parallel Track / JISC"],
        [
            [
                name,
                rows,
                *(round(total_seconds, 2) for total_seconds in seconds.values()),
                round(seconds["parallel_track"] / seconds["jisc"], 2),
            ]
            for name, runs in times.items()
            for rows, seconds in zip(between, runs, strict=True)
        ],
    )

    def draw(axes: list[Axes]) -> None:
        for (name, runs), axis in zip(times.items(), axes, strict=True):
            for strategy in strategies:
                axis.semilogx(between, [seconds[strategy] for seconds in runs], marker="o", label=NAMES[strategy])
            axis.set(title=f"{name}, changes that follow each other", xlabel="rows between changes", ylabel="seconds")
            axis.set_ylim(bottom=0)

    report.plot(draw, 2, "frequency")
    report.say(
        "After every change Parallel Track runs one more plan until all rows in the windows are new. JISC always "
        "runs one plan, however much of its state is missing."
    )


def main(sections: Iterable[Any] = (during_a_change, without_a_change, first_result, frequency)) -> None:
    pa.set_cpu_count(1)
    report = Report("transition", "Changing the plan of a join of many streams", "python -m benchmarks.transition")
    for section in sections:
        section(report)
    report.write()


if __name__ == "__main__":
    main()
