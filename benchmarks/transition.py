"""Changing the plan of a long join: every strategy on the experiments of the JISC paper (section 6).

Run by `python -m benchmarks.transition`, one core. All streams are joined on one key; windows hold `ROWS` rows. What
the strategies find is compared before a figure is shown; a time is the least of several. Beside them run Braid's own
probe sequences, which keep no combinations, have nothing to complete, and ask each row first whether it has a match
everywhere; and a tree that never changes, which nobody who keeps combinations can outrun. `stairs` and its just-in-time
variant are Moving State and JISC here (see `braid.engine.transition.stairs`).
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
WORKLOADS = {"one match in every window": each_once, "one match on average": drawn}


def check(found: Mapping[str, pa.Table], some: bool = True) -> None:
    """Refuse to go on unless all have found the same, and something at all where there is something to find."""
    reference = next(iter(found.values()))
    assert reference.num_rows or not some, "nothing was found, so that there is nothing to compare"
    for name, table in found.items():
        assert_same_rows(table, reference, message=name)


def migration(given: Input, kind: str, strategy: str) -> tuple[float, pa.Table]:
    """Seconds for one window of rows after a change, the time Parallel Track runs both plans, and what they find."""
    transition = best_case(given.names) if kind == "best case" else worst_case(given.names)
    run = Run(given, transition.before, "jisc" if strategy == UNCHANGED else strategy)
    seconds = 0.0 if strategy == UNCHANGED else run.change(transition.after)
    return seconds + run.steps(ROWS // STEP), run.found


def during_a_change(report: Report) -> None:
    """One window of rows after a change, by the number of joins."""
    counts = (4, 8, 12, 16, 20)
    times: dict[tuple[str, str], list[float]] = {}
    for kind in ("best case", "worst case"):
        for joins in report.progress(counts, f"change of plan, {kind}"):
            given = Input(joins, ROWS // STEP)
            runs = {strategy: [migration(given, kind, strategy) for _ in range(REPEATED)] for strategy in NAMES}
            check({strategy: repeated[0][1] for strategy, repeated in runs.items()})
            for strategy, repeated in runs.items():
                times.setdefault((kind, strategy), []).append(min(seconds for seconds, _ in repeated))
        report.say(f"## While the plan changes, {kind} (figures 7 and 8)")
        report.say(
            f"Seconds for one window of rows of every stream right after the change, in steps of {STEP} rows of each; "
            "the results are all the same."
        )
        report.table(
            ["joins", *NAMES.values(), "Parallel Track / JISC", "CACQ / JISC", "Parallel Track / no change"],
            [
                [
                    joins,
                    *(round(times[kind, strategy][place], 2) for strategy in NAMES),
                    round(times[kind, "parallel_track"][place] / times[kind, "jisc"][place], 2),
                    round(times[kind, "cacq"][place] / times[kind, "jisc"][place], 2),
                    round(times[kind, "parallel_track"][place] / times[kind, UNCHANGED][place], 2),
                ]
                for place, joins in enumerate(counts)
            ],
        )

    def draw(axes: list[Axes]) -> None:
        for kind, axis in zip(("best case", "worst case"), axes, strict=True):
            for strategy, name in NAMES.items():
                axis.plot(counts, times[kind, strategy], marker="o", label=name)
            axis.set(title=f"{kind}: one window after a change", xlabel="joins", ylabel="seconds", ylim=(0, None))

    report.plot(draw, 2)
    report.say(
        "The paper sees JISC up to ten times as fast as Parallel Track, and faster in the worst case too. Here "
        "Parallel Track runs two plans and no more: whether a result is of new rows alone, and whether an old plan "
        "has come to its end, are comparisons of ids, where the paper's looks for duplicates and goes through its "
        "states. The last column shows it: but for the noise of the machine, both plans together cost no more than "
        "twice what one costs that never changes, and nobody who keeps combinations is faster than that one. So JISC "
        "cannot be ahead by more than that in one change; where changes overlap it can (see the last table)."
    )


def normal_times(given: Input, steps: int) -> dict[str, float]:
    """Median seconds of a step of each, on the same rows, repeated in turn."""
    transition = worst_case(given.names)
    runs = {
        UNCHANGED: Run(given, transition.after, "jisc"),
        "jisc": Run(given, transition.before, "jisc"),
        "cacq": Run(given, transition.after, "cacq"),
        SEQUENCES: Run(given, transition.after, SEQUENCES),
    }
    runs["jisc"].change(transition.after)
    for run in runs.values():
        run.steps(len(given.batches) - FILLING - steps)
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    order = list(runs)
    for _ in range(steps):
        # Whoever runs after one that leaves much in the processor's cache has it harder: they take turns at that.
        order.append(order.pop(0))
        for name in order:
            seconds[name].append(runs[name].step())
    check({name: run.found for name, run in runs.items()}, some=given.matched)
    return {name: float(np.median(taken)) for name, taken in seconds.items()}


def without_a_change(report: Report) -> None:
    """A tree that never changed, one that has and is complete again, and CACQ, by the size of a step."""
    rows: list[list[Any]] = []
    sizes = (10, 100, 1_000, ROWS)
    measured_for: dict[str, list[dict[str, float]]] = {workload: [] for workload in WORKLOADS}
    for workload, keys in WORKLOADS.items():
        for step in report.progress(sizes, f"normal operation, {workload}"):
            # The change is long over: all rows that were there before it are gone.
            measured = max(24, min(40, 4 * ROWS // step))
            given = Input(JOINS, 2 * ROWS // step + measured, step=step, keys=keys)
            times = normal_times(given, measured)
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
                each = [1e6 * taken[strategy] / size / (JOINS + 1) for taken, size in zip(times, sizes, strict=True)]
                axis.loglog(sizes, each, marker="o", label=NORMAL_NAMES[strategy])
            axis.set(title=workload, xlabel="rows of each stream in a step", ylabel="microseconds a row")

    report.plot(draw, 2, "normal")
    report.say(
        "The paper sees JISC twice as fast as CACQ, which probes every window for each row and sends each tuple "
        "through an eddy in between, one by one. Trees probe half as often here too, and their joins take what is new "
        "of all streams below them at once. But a step's rows of a stream go through CACQ's eddy together, too, and a "
        "tree writes down every combination that it finds. So JISC is ahead by as much where steps are small, which is "
        "what the paper measures, and by less where they are large."
    )


def first_result(report: Report) -> None:
    """Latency after a change, against the size of the windows."""
    shown = {}
    hashed, looped = (1_000, 3_000, 10_000, 30_000, 100_000), (100, 300, 1_000, 3_000)
    for theta, joins, sizes in ((False, JOINS, hashed), (True, 4, looped)):
        latencies: dict[str, list[float]] = {}
        for size in report.progress(sizes, "latency, nested loops" if theta else "latency, hash joins"):
            given = Input(joins, 1, size, theta=theta)
            transition = worst_case(given.names)
            found = {}
            for strategy in ("jisc", "moving_state", UNCHANGED):
                waits = []
                for _ in range(REPEATED):
                    run = Run(given, transition.before, "jisc" if strategy == UNCHANGED else strategy)
                    waits.append((0.0 if strategy == UNCHANGED else run.change(transition.after)) + run.step())
                latencies.setdefault(strategy, []).append(min(waits))
                found[strategy] = run.found
            check(found)
        shown[theta] = (sizes, latencies)
        kind = "nested loops" if theta else "hash joins"
        report.say(f"## Latency of a change, {kind} (figure 10)")
        report.say(
            f"{joins} joins, worst case; seconds from the change until the next {STEP} rows of each stream have all "
            "their results."
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
            sizes, latencies = shown[theta]
            for strategy, seconds in latencies.items():
                axis.loglog(sizes, seconds, marker="o", label=NAMES[strategy])
            title = "nested loops" if theta else "hash joins"
            axis.set(title=f"first rows after a change, {title}", xlabel="rows in a window", ylabel="seconds")

    report.plot(draw, 2, "latency")
    report.say(
        "As in the paper, Moving State has everybody wait until a whole window is joined anew. JISC takes the time "
        "that a step takes anyway, some times over: in nested loops that grows with the window, as they do."
    )


def frequency(report: Report) -> None:
    """The same rows with a change every so many steps."""
    every = (1, 5, 20, 80, 160)
    total = 2 * max(every)
    given = Input(JOINS, total)
    strategies = ("jisc", "parallel_track", "cacq", SEQUENCES)
    taken: dict[str, list[dict[str, float]]] = {}
    for transition in (best_case(given.names), worst_case(given.names)):
        for steps in report.progress(every, f"changes, {transition.name}"):
            seconds, found = {}, {}
            for strategy in strategies:
                run = Run(given, transition.before, strategy)
                orders = [transition.after, transition.before]
                seconds[strategy] = sum(
                    run.change(orders[number % 2]) + run.steps(steps) for number in range(total // steps)
                )
                found[strategy] = run.found
            check(found)
            taken.setdefault(transition.name, []).append(seconds)
    between = [steps * given.rows_in_a_step for steps in every]
    report.say("## Changes that follow each other (figures 11 and 12)")
    report.say(
        f"{JOINS} joins, {total} steps with full windows, a change every so many rows; seconds in all. All windows "
        f"together hold {ROWS * len(given.names):,} rows: changes that are nearer to each other overlap."
    )
    report.table(
        ["", "rows between changes", *(NAMES[strategy] for strategy in strategies), "Parallel Track / JISC"],
        [
            [
                name,
                rows,
                *(round(time, 2) for time in seconds.values()),
                round(seconds["parallel_track"] / seconds["jisc"], 2),
            ]
            for name, runs in taken.items()
            for rows, seconds in zip(between, runs, strict=True)
        ],
    )

    def draw(axes: list[Axes]) -> None:
        for (name, runs), axis in zip(taken.items(), axes, strict=True):
            for strategy in strategies:
                axis.semilogx(between, [seconds[strategy] for seconds in runs], marker="o", label=NAMES[strategy])
            axis.set(title=f"{name}, changes that follow each other", xlabel="rows between changes", ylabel="seconds")
            axis.set_ylim(bottom=0)

    report.plot(draw, 2, "frequency")
    report.say(
        "With every change Parallel Track has one plan more to run until the windows have turned over, while JISC has "
        "one plan, whatever is missing of it."
    )


def main(parts: Iterable[Any] = (during_a_change, without_a_change, first_result, frequency)) -> None:
    pa.set_cpu_count(1)
    report = Report("transition", "Changing the plan of a join of many streams", "python -m benchmarks.transition")
    for part in parts:
        part(report)
    report.write()


if __name__ == "__main__":
    main()
