"""What a plan change copies although both plans have it, in bytes, by length of the windows; simulated."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa
from matplotlib.axes import Axes

import braid
from braid.hosts.simulated.simulation import Simulation
from braid.planning.deployment import Deployment
from braid.runtime.migration.change import Phase
from experiments.report import Report

WINDOWS = (10, 30, 100)
RATE = 100
ASKED = 110.0
SECONDS = 120
KEYS = 2_000
BATCH_ROWS = 100
NETWORK = braid.Topology.from_links([("paris", "lyon", 0.01), ("lyon", "nice", 0.01)])
SITES = {"a": "paris", "b": "paris", "c": "lyon", "d": "nice"}
PLANS = ("same", "other join order", "all at the sink")


@dataclass(frozen=True)
class Measured:
    """How long a change took, the bytes it has added meanwhile, and how many windows of base streams were brought.

    `a_second` is how many bytes the plan ships in a second.
    """

    seconds: float
    added: int
    filled: int
    a_second: float


def run(report: Report) -> None:
    table: list[tuple[int | str, ...]] = []
    curves: dict[str, list[float]] = {plan: [] for plan in PLANS}
    for window in report.progress(WINDOWS, "windows"):
        for plan, shares in curves.items():
            measured = _measure(window, plan)
            shares.append(measured.added / measured.a_second)
            table.append(
                (window, plan, f"{measured.seconds:.2f}", measured.filled, measured.added, f"{shares[-1]:.1f}")
            )
    report.say(
        f"A chain of four streams of {RATE} rows a second at three sites: a ⋈ b at paris, ⋈ c at lyon, ⋈ d at nice. "
        f"After {ASKED:g} seconds, when windows are full, the plan changes: to the very same plan, which has "
        "everything in common with the old one; to one with another join order; and to all joins at the sink. The "
        "table has the bytes that the change adds over all links until it is done, and for how many seconds of traffic "
        "of the running plan they stand."
    )
    report.table(
        ["window, s", "new plan", "seconds", "windows brought", "added, bytes", "seconds of traffic"],
        table,
    )
    report.say(
        "A window of a base stream that a site has already is not brought again: both plans read the same channel. A "
        "site that does the same for both plans goes on as it is, so that a change to the very same plan adds nothing. "
        "Earlier, such a change added 2.7, 7.9 and 22 seconds of traffic: each join ran twice, and shipped a window "
        "full of rows once more. The price is that the channel of a join, like that of a stream, keeps as many rows as "
        "windows hold. A plan with another join order has other joins, whose rows have to be made and shipped. A "
        "controller that weighs a change counts all of this: the windows of base streams, the live rows of joins that "
        "are made anew, and two plans that run side by side."
    )

    def draw(axes: list[Axes]) -> None:
        for plan, shares in curves.items():
            axes[0].plot(WINDOWS, shares, marker="o", label=plan)
        axes[0].set(xlabel="window, s", ylabel="added, seconds of traffic")

    report.plot(draw)


@cache
def _streams() -> dict[str, pa.Table]:
    tables = {}
    for number, name in enumerate(SITES):
        chance = np.random.default_rng(number)
        times = np.sort(chance.integers(0, SECONDS * 1_000_000, SECONDS * RATE))
        keys = {key: chance.integers(0, KEYS, len(times)) for key in ("k", "l", "m")}
        tables[name] = pa.table({"ts": pa.array(times, pa.timestamp("us")), **keys})
    return tables


def _text(window: int) -> str:
    sources = ", ".join(f"{name} [RANGE {window} SECONDS]" for name in SITES)
    return f"SELECT a.k, b.l, c.m FROM {sources} WHERE a.k = b.k AND b.l = c.l AND c.m = d.m"


def _plans(window: int) -> dict[str, Deployment]:
    """Plans by name: made from figures for which each of them is the best one."""

    def planned(planner: str, **likely: float) -> Deployment:
        figures = {"a.k = b.k": 1e-6, "b.l = c.l": 1e-5, "c.m = d.m": 1e-4, **likely}
        known = braid.Statistics(rates=dict.fromkeys(SITES, float(RATE)), selectivities=figures, sites=SITES)
        return braid.plan(query, known, NETWORK, sink="nice", planner=planner)

    declared = [braid.Stream(name, table.schema, "ts") for name, table in _streams().items()]
    query = braid.parse(_text(window), {stream.name: stream for stream in declared})
    other = {"a.k = b.k": 1e-3, "b.l = c.l": 1e-4, "c.m = d.m": 1e-6}
    return {
        "same": planned("exact"),
        "other join order": planned("exact", **other),
        "all at the sink": planned("at_sink"),
    }


def _measure(window: int, plan: str) -> Measured:
    changed, fixed = _simulate(window, plan), _simulate(window, None)
    (change,) = changed.changes
    done = change.phases[Phase.DONE]

    def crossed(simulation: Simulation) -> int:
        return sum(crossing.bytes for crossing in simulation.crossings if ASKED <= crossing.time < done)

    filled = [event for event in changed.timeline if event.what.startswith("has a window filled")]
    return Measured(done - ASKED, crossed(changed) - crossed(fixed), len(filled), sum(fixed.measured.values()))


@cache
def _simulate(window: int, plan: str | None) -> Simulation:
    plans = _plans(window)
    changes = [] if plan is None else [(ASKED, plans[plan])]
    return braid.simulate(
        _text(window),
        _streams(),
        NETWORK,
        sites=SITES,
        sink="nice",
        plan=plans["same"],
        changes=changes,
        batch_rows=BATCH_ROWS,
    )
