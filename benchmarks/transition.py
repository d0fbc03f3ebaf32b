"""Changing the plan of a long join: every strategy on the experiments of the JISC paper (section 6).

Run by `python -m benchmarks.transition`, one core. All streams are joined on one key, drawn uniformly so that a row
finds one match in each window on average. A window holds `ROWS` rows; a step takes a tenth of that from each stream.
What the strategies find is compared before a figure is shown; a time is the least of several. Beside them run Braid's
own probe sequences, which keep no combinations, have nothing to complete, and ask each row first whether it has a match
everywhere.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
from experiments.report import Report
from matplotlib.axes import Axes

from benchmarks.workload import SECOND, Workload, one_key, uniform
from braid.engine.segment import Segment
from braid.engine.site import Site
from braid.language import parse
from braid.model.plan import Plan
from braid.model.stream import Stream
from braid.planning.lower import lower
from braid.testing import assert_same_rows

ROWS = 10_000
WINDOW = 10
"""Steps, each a second of event time, that a window is long."""
JOINS = 20
SEQUENCES = "sequences"
NAMES = {
    "jisc": "JISC",
    "parallel_track": "Parallel Track",
    "moving_state": "Moving State",
    "cacq": "CACQ",
    SEQUENCES: "probe sequences",
}
COMPARED = tuple(NAMES)
REPEATED = 3


class Input:
    """Streams s0, s1, .. whose windows hold so many rows each, joined on one key or in nested loops."""

    def __init__(self, joins: int, rows: int = ROWS, seconds: int = 3 * WINDOW, theta: bool = False) -> None:
        columns, condition = one_key(joins + 1, uniform(rows))
        self.names = tuple(columns)
        if theta:
            # The same as equality, but nothing that an index could find matches by; of all pairs, so that no order
            # needs a cross product.
            differences = (f"({left}.k - {right}.k)" for left, right in combinations(self.names, 2))
            condition = " AND ".join(f"{difference} * {difference} < 1" for difference in differences)
        self.batches = Workload("", columns, condition, WINDOW, seconds, rows // WINDOW).batches()
        sources = ", ".join(f"{name} [RANGE {WINDOW} SECONDS]" for name in self.names)
        text = f"SELECT s0.row AS first, s1.row AS second FROM {sources} WHERE {condition}"
        self.query = parse(text, {name: Stream(name, batch.schema, "ts") for name, batch in self.batches[0].items()})

    @property
    def rows_in_a_step(self) -> int:
        return sum(batch.num_rows for batch in self.batches[0].values())


def left_deep(order: Sequence[str]) -> Any:
    tree: Any = order[0]
    for stream in order[1:]:
        tree = (tree, stream)
    return tree


def swapped(order: Sequence[str], one: int, other: int) -> list[str]:
    changed = list(order)
    changed[one], changed[other] = changed[other], changed[one]
    return changed


@dataclass(frozen=True)
class Transition:
    """From one order of a left-deep tree to another."""

    name: str
    before: tuple[str, ...]
    after: tuple[str, ...]


def best_case(names: Sequence[str]) -> Transition:
    """One join of the new plan is missing: the two streams below the top change places."""
    return Transition("best case", tuple(names), tuple(swapped(names, len(names) - 2, len(names) - 3)))


def worst_case(names: Sequence[str]) -> Transition:
    """Every join of the new plan but the last is missing: the lowest stream and the top one change places."""
    return Transition("worst case", tuple(names), tuple(swapped(names, 0, len(names) - 1)))


class Run:
    """One site fed step by step, with the seconds of each."""

    def __init__(self, given: Input, order: Sequence[str], strategy: str) -> None:
        self._strategy = strategy
        self._batches = given.batches
        self._query = given.query
        self._site = Site(self._program(order), strategy="jisc" if strategy == SEQUENCES else strategy)
        self._next = 0
        self.found: list[pa.RecordBatch] = []

    def _program(self, order: Sequence[str]) -> Any:
        plan = Plan.of(self._query, left_deep(order))
        return lower(plan.without_kept() if self._strategy in ("cacq", SEQUENCES) else plan)

    def steps(self, count: int) -> float:
        """Seconds that so many steps take."""
        return sum(self.step() for _ in range(count))

    def step(self) -> float:
        segments = [Segment(name, rows, self._next * SECOND) for name, rows in self._batches[self._next].items()]
        self._next += 1
        started = time.perf_counter()
        self.found = self._site.step(segments)
        return time.perf_counter() - started

    def change(self, order: Sequence[str]) -> float:
        started = time.perf_counter()
        self._site.change(self._program(order))
        return time.perf_counter() - started

    def until_first_rows(self, order: Sequence[str]) -> float:
        """Seconds from a change of plan until the next hundred rows of each stream have their results."""
        seconds = self.change(order)
        segments = [
            Segment(name, rows.slice(0, 100), self._next * SECOND) for name, rows in self._batches[self._next].items()
        ]
        started = time.perf_counter()
        self._site.step(segments)
        return seconds + time.perf_counter() - started

    @property
    def schema(self) -> pa.Schema:
        return self._site.schema


@dataclass(frozen=True)
class Migration:
    """One window of rows after a change, the time Parallel Track runs both plans."""

    seconds: float
    found: pa.Table


def migration(given: Input, kind: str, strategy: str) -> Migration:
    transition = best_case(given.names) if kind == "best case" else worst_case(given.names)
    run = Run(given, transition.before, strategy)
    run.steps(2 * WINDOW)
    seconds = run.change(transition.after)
    found: list[pa.RecordBatch] = []
    for _ in range(WINDOW):
        seconds += run.step()
        found += run.found
    return Migration(seconds, pa.Table.from_batches(found, run.schema))


def during_a_change(report: Report) -> None:
    counts = (4, 8, 12, 16, 20)
    times: dict[tuple[str, str], list[float]] = {}
    for kind in ("best case", "worst case"):
        for joins in report.progress(counts, f"change of plan, {kind}"):
            given, reference = Input(joins), None
            for strategy in COMPARED:
                runs = [migration(given, kind, strategy) for _ in range(REPEATED)]
                times.setdefault((kind, strategy), []).append(min(run.seconds for run in runs))
                reference = reference or runs[0].found
                assert_same_rows(runs[0].found, reference)
        report.say(f"## While the plan changes, {kind} (figures 7 and 8)")
        report.say(
            "Seconds for one window of rows of every stream right after the change; the results are all the same."
        )
        report.table(
            ["joins", *NAMES.values(), "Parallel Track / JISC", "CACQ / JISC"],
            [
                [
                    joins,
                    *(round(times[kind, strategy][place], 3) for strategy in COMPARED),
                    round(times[kind, "parallel_track"][place] / times[kind, "jisc"][place], 2),
                    round(times[kind, "cacq"][place] / times[kind, "jisc"][place], 2),
                ]
                for place, joins in enumerate(counts)
            ],
        )

    def draw(axes: list[Axes]) -> None:
        for kind, axis in zip(("best case", "worst case"), axes, strict=True):
            for strategy in COMPARED:
                axis.plot(counts, times[kind, strategy], marker="o", label=NAMES[strategy])
            axis.set(title=f"{kind}: one window after a change", xlabel="joins", ylabel="seconds", ylim=(0, None))

    report.plot(draw, 2)
    report.say(
        "The paper sees JISC up to ten times as fast as Parallel Track. Here Parallel Track runs two plans and no "
        "more: whether a result is of new rows alone, and whether an old plan has come to its end, are comparisons of "
        "ids, where the paper's looks for duplicates and goes through its states. Two plans cost at most twice as much "
        "as one, so JISC cannot be ahead by more than that. In the worst case it is behind: Parallel Track starts with "
        "empty states that fill as rows come, JISC brings the full ones back, a few rows at a time."
    )


def without_a_change(report: Report) -> None:
    """A tree that never changed, one that has and is complete again, and CACQ, on the same rows, repeated in turn."""
    given = Input(JOINS, seconds=6 * WINDOW)
    transition = worst_case(given.names)
    runs = {
        "a tree that never changed": Run(given, transition.after, "jisc"),
        "JISC, long after a change": Run(given, transition.before, "jisc"),
        "CACQ": Run(given, transition.after, "cacq"),
        "probe sequences": Run(given, transition.after, SEQUENCES),
    }
    for name, run in runs.items():
        run.steps(2 * WINDOW)
        if name.startswith("JISC"):
            run.change(transition.after)
        run.steps(WINDOW + 2)
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in report.progress(range(2 * WINDOW), "normal operation"):
        for name, run in runs.items():
            seconds[name].append(run.step())
        results = [pa.Table.from_batches(run.found, run.schema) for run in runs.values()]
        for result in results[1:]:
            assert_same_rows(result, results[0])
    medians = {name: float(np.median(taken)) for name, taken in seconds.items()}
    plain = medians["a tree that never changed"]
    report.say("## Normal operation (figure 9)")
    report.say(f"{JOINS} joins, full windows, median seconds of a step of {given.rows_in_a_step:,} rows.")
    report.table(
        ["", "seconds", "beside the plain tree"],
        [[name, round(taken, 4), round(taken / plain, 2)] for name, taken in medians.items()],
    )
    report.say(
        "The paper sees JISC twice as fast as CACQ, which probes every window for each row and sends each tuple "
        "through an eddy in between. Trees probe half as often here too. But routes are looked up once for a batch, "
        "rows probe in one compiled loop, and to keep a combination costs several times as much as to probe for it "
        "again: so CACQ is ahead of every tree, and probe sequences, Braid's own plans, of both."
    )


def first_result(report: Report) -> None:
    """Latency after a change, against the size of the windows."""
    shown = {}
    hashed, looped = (1_000, 3_000, 10_000, 30_000, 100_000), (100, 300, 1_000, 3_000)
    for theta, joins, sizes in ((False, JOINS, hashed), (True, 4, looped)):
        latencies: dict[str, list[float]] = {}
        for size in report.progress(sizes, "latency, nested loops" if theta else "latency, hash joins"):
            given = Input(joins, size, 2 * WINDOW, theta)
            transition = worst_case(given.names)
            for strategy in ("jisc", "moving_state"):
                waits = []
                for _ in range(REPEATED):
                    run = Run(given, transition.before, strategy)
                    run.steps(WINDOW + 1)
                    waits.append(run.until_first_rows(transition.after))
                latencies.setdefault(strategy, []).append(min(waits))
        shown[theta] = (sizes, latencies)
        kind = "nested loops" if theta else "hash joins"
        report.say(f"## Latency of a change, {kind} (figure 10)")
        report.say(
            f"{joins} joins, worst case; seconds from the change until the next hundred rows of each stream have all "
            "their results."
        )
        report.table(
            ["rows in a window", "JISC", "Moving State", "Moving State / JISC"],
            [
                [size, round(jisc, 4), round(moving, 4), round(moving / jisc, 1)]
                for size, jisc, moving in zip(sizes, latencies["jisc"], latencies["moving_state"], strict=True)
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


def frequency(report: Report) -> None:
    """The same rows with a change every so many steps."""
    every = (2, 4, 8, 16)
    given = Input(JOINS, seconds=2 * WINDOW + 2 * max(every))
    rows: list[list[Any]] = []
    for transition in (best_case(given.names), worst_case(given.names)):
        for steps in report.progress(every, f"changes, {transition.name}"):
            taken = {}
            for strategy in ("jisc", "parallel_track", "cacq", SEQUENCES):
                run = Run(given, transition.before, strategy)
                run.steps(2 * WINDOW)
                orders = [transition.after, transition.before]
                seconds = 0.0
                for number in range(2 * max(every) // steps):
                    seconds += run.change(orders[number % 2]) + run.steps(steps)
                taken[strategy] = seconds
            rows.append(
                [transition.name, steps * given.rows_in_a_step, *(round(seconds, 3) for seconds in taken.values())]
            )
    report.say("## Changes that follow each other (figures 11 and 12)")
    report.say(f"{JOINS} joins, {2 * max(every)} steps with full windows, a change every so many rows; seconds in all.")
    report.table(["", "rows between changes", "JISC", "Parallel Track", "CACQ", "probe sequences"], rows)


def main(parts: Iterable[Any] = (during_a_change, without_a_change, first_result, frequency)) -> None:
    pa.set_cpu_count(1)
    report = Report("transition", "Changing the plan of a join of many streams", "python -m benchmarks.transition")
    for part in parts:
        part(report)
    report.write()


if __name__ == "__main__":
    main()
