"""Figures 4 and 5 and table 3 of the NOS paper by running its joins under simulation: a fixed plan, CNU and DNU."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from matplotlib.axes import Axes

import braid
from braid.adapt.controller import Policy
from braid.hosts.simulated.changes import SimulatedChange
from braid.hosts.simulated.simulation import Simulation
from braid.model.network.generators import fully_connected
from braid.planning.cost.models import UnitTime
from braid.planning.order.greedy import Greedy
from braid.planning.order.plan_update import update_among_nodes, update_centrally
from braid.runtime.migration.change import Phase
from experiments.nos_updates import HIGH, LOW, TABLE_3, USUAL, problem_of
from experiments.report import Report, percent

SCALE = 5.0
"""Rates and bandwidth are this many times those of the paper; the selectivity is divided by it."""

ROUNDS = ((3.0, 7.5, "up"), (7.5, 12.0, "down"))
"""Between which seconds the rate of the first stream is another one, and whether it has gone up or down."""

SECONDS = 12.0
SELECTIVITY = 0.01 / SCALE
BANDWIDTH = SCALE * 1_024_000 / 8
BATCH_ROWS = 100
ROW_BYTES = 150
WIDTH = 0.25
"""The length of the intervals for which costs are shown, in seconds."""

QUICK = Policy(threshold=0.15, horizon=5.0, drift=0.5, half_life=0.5, overlap=0.5)
"""Rates change every few seconds, so a controller has to react within tenths of a second."""

CONTROLLERS = {"fixed": None, "CNU": "central", "DNU": "distributed"}
MODIFICATION = ("report", "token", "proposal")
SYNCHRONIZATION = ("ready", "verdict", "promise", "answered")


@dataclass(frozen=True)
class Counted:
    """The messages and windows sent from site to site in one round, and how long the change took."""

    modification: int
    windows: int
    synchronization: int
    decided: float | None
    carried_out: float | None

    @property
    def migration(self) -> int:
        """As the paper counts migration: it includes the messages of synchronization."""
        return self.windows + self.synchronization


@dataclass(frozen=True)
class Runs:
    """The runs of one join, by the controller that has decided on its plan."""

    streams: int
    simulations: dict[str, Simulation]

    def cost(self, name: str) -> list[float]:
        """The seconds that links were busy, per second, in each interval."""
        sent = np.zeros(int(SECONDS / WIDTH))
        for crossing in self.simulations[name].crossings:
            interval = int(crossing.time / WIDTH)
            if interval < len(sent):
                sent[interval] += crossing.bytes
        return list(sent / BANDWIDTH / WIDTH)

    def changes(self, name: str, begin: float, end: float) -> list[SimulatedChange]:
        """The changes that were asked for in a round and carried out."""
        changes = self.simulations[name].changes
        return [change for change in changes if begin <= change.asked < end and change.phase is Phase.DONE]

    def counted(self, name: str, begin: float, end: float) -> Counted:
        events = [event for event in self.simulations[name].timeline if begin <= event.time < end]
        messages = [event.what.partition(": ")[2] for event in events if event.what.startswith("tells ")]
        changes = self.changes(name, begin, end)
        last = changes[-1] if changes else None
        return Counted(
            # A message about a change that has no fact announces the change.
            modification=sum(what in MODIFICATION or not _is_fact(what) for what in messages),
            windows=sum(event.what.startswith("has a window filled") for event in events),
            synchronization=sum(map(_is_fact, messages)),
            decided=None if last is None else last.asked - begin,
            carried_out=None if last is None else last.phases[Phase.DONE] - last.asked,
        )


def _is_fact(what: str) -> bool:
    return any(f" {kind}" in what for kind in SYNCHRONIZATION)


def run(report: Report) -> None:
    runs = [_runs(count) for count in report.progress((4, 8), "joins")]
    (up, down, _), (_, end, _) = ROUNDS
    report.say(
        "The joins of the paper's experiments: 4 and 8 streams, one at each site, all sites linked with each other, 5 "
        "ms, rows of 150 bytes, windows of 500 ms. The rate of the first stream is low, high, and low again."
    )
    report.say(
        f"Not all is as in the paper. Rates are {SCALE:g} times as high ({SCALE * LOW:,.0f} and {SCALE * HIGH:,.0f} "
        f"rows a second, {SCALE * USUAL:,.0f} of the other streams), and so is the bandwidth ({SCALE * 1024:,.0f} "
        f"kbps); the selectivity is as much lower ({SELECTIVITY:g}), so that a row meets as many others as in the "
        "paper. The reason: rows travel in Arrow batches with 0.5 KB of header and 140 bytes for each column. At the "
        "paper's rates a batch would have more header than rows, and no plan can save the header. Streams come in "
        f"batches of {BATCH_ROWS} rows, which take 100 to 400 ms. So the rate stays the same for longer than the "
        f"paper's 2 s: it is high from {up:g} to {down:g} s of {end:g}. Cost is how long links are busy, per second; "
        "the paper adds the time of processing. All runs gave the same number of results."
    )
    report.table(
        ["streams", "plan", "cost, rate low", "cost, rate high", "high, against fixed", "whole run", "changes"],
        _costs(runs),
    )
    report.say(
        "Messages and time of each round. In parentheses: the paper's count, and the count planned before the run."
    )
    report.table(
        [
            "streams",
            "rate goes",
            "plan",
            "modification (paper, planned)",
            "migration (paper, planned)",
            "synchronization (paper, planned)",
            "s until decided",
            "s until done",
        ],
        _messages(runs),
    )
    _explain(report)
    report.plot(lambda axes: _draw(axes, runs), 2)


def _explain(report: Report) -> None:
    report.say(
        "Costs are as in figure 4. While the rate is high, the plan for the low rate is expensive. Both kinds of "
        "control change to a plan that costs less, and back when the rate is low again. They do so a second or more "
        "after the rate has changed, because a rate has to be measured. No plan changes in the first second, when "
        "windows are not full yet. While a plan changes, both plans run, and the windows of new joins are filled: that "
        "is the spike, which the paper has too. With 8 streams all joins are new, and a window of each is shipped once "
        "more. This costs as much as is saved in the few seconds until the rate is low again, so that the whole run "
        "costs no less. With 8 streams CNU's change takes longer than DNU's, and so does its spike."
    )
    report.say(
        "The paper's nodes know all selectivities. Here those of joins that the running plan does not make are "
        "estimated, and a new order of eight streams consists of seven such joins. When the pairs of streams were "
        "estimated one by one, each estimate was 1.4 times too high. Seven of them multiply, and no plan followed the "
        "rate. Now the first probe of each stream measures a pair. Pairs that measured pairs connect follow from "
        "these. All other estimates are corrected by the error of the estimates of measured joins."
    )
    report.say(
        "Counts differ from the paper's for three reasons. First, the paper counts one report of one changed rate. "
        "Here each site reports (CNU) or sends tokens (DNU) whenever a figure moves by more than chance. So there are "
        "more messages of modification, and with 8 streams DNU sends thousands. Second, the paper synchronizes in two "
        "phases, all to all. Here there are four facts: ready, go, promise, answered. Only sites with results promise "
        "and answer. With central control each fact goes through the coordinator, with distributed control to every "
        "other site. Third, in the paper a node that gets an operator asks another node for a window. Here a window is "
        "filled by reading a channel from further back, and only at sites that did not read that channel before."
    )


def _runs(count: int) -> Runs:
    names = [f"S{number}" for number in range(1, count + 1)]
    tables = {name: _rows(number, name == "S1") for number, name in enumerate(names)}
    sources = ", ".join(f"{name} [RANGE 500 MILLISECONDS]" for name in names)
    conditions = " AND ".join(f"S1.J = {name}.J" for name in names[1:])
    text = f"SELECT {', '.join(f'{name}.P AS P{name[1:]}' for name in names)} FROM {sources} WHERE {conditions}"
    known = braid.Statistics(
        rates={name: SCALE * (LOW if name == "S1" else USUAL) for name in names},
        sizes=dict.fromkeys(names, float(ROW_BYTES)),
        selectivities={frozenset({one, other}): SELECTIVITY for one in names for other in names if one < other},
    )
    simulations = {
        name: braid.simulate(
            text,
            tables,
            fully_connected(count, latency=0.005, bandwidth=BANDWIDTH),
            sites={stream: f"n{number}" for number, stream in enumerate(names)},
            sink="n0",
            planner="greedy",
            cost=UnitTime(),
            statistics=known,
            batch_rows=BATCH_ROWS,
            controller=controller,
            adapt=QUICK,
        )
        for name, controller in CONTROLLERS.items()
    }
    counts = {simulation.results.num_rows for simulation in simulations.values()}
    if len(counts) != 1:
        raise AssertionError(f"the plans give different numbers of results: {counts}")
    return Runs(count, simulations)


def _rows(seed: int, changes: bool) -> pa.Table:
    """Rows of a stream: a time, a join key and a payload that does not compress, 150 bytes in all."""
    chance = np.random.default_rng(seed)
    spans = [(0.0, ROUNDS[0][0], LOW), *((begin, end, HIGH if way == "up" else LOW) for begin, end, way in ROUNDS)]
    if not changes:
        spans = [(0.0, SECONDS, USUAL)]
    times = np.concatenate([np.arange(begin, end, 1 / (SCALE * rate)) for begin, end, rate in spans])
    moments = np.round(times * 1e6).astype(np.int64)
    return pa.table(
        {
            "ts": pa.array(moments, pa.timestamp("us")),
            "J": chance.integers(0, round(1 / SELECTIVITY), len(times)),
            "P": [chance.bytes(ROW_BYTES - 16) for _ in times],
        }
    )


def _mean(cost: Sequence[float], spans: Iterable[tuple[float, float]]) -> float:
    """The mean cost in the last second of some spans: by then a plan has followed."""
    return float(np.mean([cost[round((end - 1.0) / WIDTH) : round(end / WIDTH)] for _, end in spans]))


def _costs(runs: Sequence[Runs]) -> list[tuple[int, str, float, float, str, str, int]]:
    low = [(0.0, ROUNDS[0][0]), *((begin, end) for begin, end, way in ROUNDS if way == "down")]
    high = [(begin, end) for begin, end, way in ROUNDS if way == "up"]
    rows = []
    for one in runs:
        fixed = one.cost("fixed")
        for name, simulation in one.simulations.items():
            cost = one.cost(name)
            saved = percent(_mean(cost, high) / _mean(fixed, high) - 1)
            done = sum(change.phase is Phase.DONE for change in simulation.changes)
            whole = percent(sum(cost) / sum(fixed) - 1)
            rows.append((one.streams, name, _mean(cost, low), _mean(cost, high), saved, whole, done))
    return rows


def _messages(runs: Sequence[Runs]) -> list[tuple[int | str, ...]]:
    rows: list[tuple[int | str, ...]] = []
    for one in runs:
        for begin, end, way in ROUNDS:
            before, after = (LOW, HIGH) if way == "up" else (HIGH, LOW)
            problem, old = problem_of(one.streams, after), Greedy().plan(problem_of(one.streams, before)).heads
            planned = {"CNU": update_centrally(problem, old), "DNU": update_among_nodes(problem, old, 0)}
            for name, update in planned.items():
                ours, paper = one.counted(name, begin, end), TABLE_3[one.streams, way, name]
                rows.append(
                    (
                        one.streams,
                        way,
                        name,
                        f"{ours.modification} ({paper[0]}, {update.modification})",
                        f"{ours.migration} ({paper[1]}, {update.migration})",
                        f"{ours.synchronization} ({paper[2]}, {update.synchronization})",
                        "-" if ours.decided is None else f"{ours.decided:.2f}",
                        "-" if ours.carried_out is None else f"{ours.carried_out:.2f}",
                    )
                )
    return rows


def _draw(axes: list[Axes], runs: Sequence[Runs]) -> None:
    for panel, one in zip(axes, runs, strict=True):
        for name in one.simulations:
            cost = one.cost(name)
            panel.step([WIDTH * number for number in range(len(cost))], cost, where="post", label=name)
        for begin, _, _ in ROUNDS:
            panel.axvline(begin, color="0.8", linewidth=1)
        panel.set(title=f"{one.streams}-way join", xlabel="seconds", ylabel="links busy, s/s")
