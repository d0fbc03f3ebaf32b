"""Figure 16: how long it takes until a query is deployed, on a network of 32 sites."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes

from braid.model.network.generators import transit_stub
from braid.planning.cluster.bottom_up import BottomUp, climb
from braid.planning.cluster.hierarchies import hierarchy_of
from braid.planning.cluster.hierarchy import Cluster
from braid.planning.cluster.views import Views
from braid.planning.cost.models import MODELS
from braid.planning.order.exact import Choice
from braid.planning.problem import Problem
from braid.workloads.synthetic import synthetic
from braid.workloads.workload import Workload
from experiments.report import Report, percent
from experiments.sinks import first_level_with_all

REPEATS = 3
"""How often each query is planned; the fastest time counts, because the machine only ever adds time."""
SECONDS_PER_MESSAGE = 0.0035
"""The time of one message; in the paper, delays between nodes were 1 to 6 ms."""
SIZES = (4, 8, 16)
PLANNERS = ("top_down", "bottom_up")


class Deployed(NamedTuple):
    """One query: the number of its streams, the seconds until it is deployed, and the number of plans considered."""

    streams: int
    seconds: float
    plans: int


@dataclass(eq=False)
class TimedViews(Views):
    """Measures how long the coordinators plan.

    The coordinators of one level plan at the same time, so the slowest one counts; levels plan one after the other.
    Bottom-Up plans several times on its way up, each time down to the sites, and these times add up.
    """

    seconds: float = 0.0
    levels: dict[int, float] = field(default_factory=dict)

    def solve(self, parts: Sequence[Choice], cluster: Cluster, level: int, target: int | None) -> Choice:
        outermost = not self.levels
        self.levels = self.levels or {level: 0.0}
        choice = super().solve(parts, cluster, level, target)
        if outermost:
            self.seconds += sum(self.levels.values())
            self.levels = {}
        return choice

    def best(self, parts: Sequence[Choice], cluster: Cluster, level: int, target: int | None) -> Choice:
        start = perf_counter()
        choice = super().best(parts, cluster, level, target)
        self.levels[level] = max(self.levels.get(level, 0.0), perf_counter() - start)
        return choice


def run(report: Report) -> None:
    network = transit_stub(transit_nodes=2, stubs_per_transit=3, stub_nodes=5, seed=3)
    anywhere = synthetic(network, streams=8, queries=25, joins=(1, 3), seed=2)
    near = _near(anywhere)
    runs: dict[tuple[str, int], list[Deployed]] = {}
    near_runs: dict[tuple[str, int], list[Deployed]] = {}
    for max_cs in report.progress(SIZES, "cluster sizes"):
        for name in PLANNERS:
            runs[name, max_cs] = _deploy(anywhere, name, max_cs)
            near_runs[name, max_cs] = _deploy(near, name, max_cs)
    streams = sorted({one.streams for one in runs[PLANNERS[0], SIZES[0]]})

    def milliseconds(deployed: list[Deployed], count: int) -> float:
        return float(np.mean([one.seconds for one in deployed if one.streams == count])) * 1e3

    def draw(axes: list[Axes]) -> None:
        for one, (title, figures) in zip(axes, (("anywhere", runs), ("near the sink", near_runs)), strict=True):
            for (name, max_cs), deployed in figures.items():
                curve = [milliseconds(deployed, count) for count in streams]
                color, line = f"C{SIZES.index(max_cs)}", "-" if name == "top_down" else "--"
                label = f"{name}, max_cs {max_cs}"
                one.plot(streams, curve, marker="o", color=color, linestyle=line, label=label)
            one.set_xticks(streams)
            one.set(xlabel="streams of the query", ylabel="ms to deployment", ylim=(0, 50), title=f"streams {title}")

    report.table(
        ["planner", "max_cs", *(f"{count} streams, ms" for count in streams)],
        [(*key, *(milliseconds(deployed, count) for count in streams)) for key, deployed in runs.items()],
    )
    report.table(
        ["Bottom-Up against Top-Down", "paper", "time", "plans considered", "time, streams near the sink"],
        [
            (
                f"max_cs {max_cs}",
                "-70%",
                _against(runs, max_cs, "seconds"),
                _against(runs, max_cs, "plans"),
                _against(near_runs, max_cs, "seconds"),
            )
            for max_cs in SIZES
        ],
    )
    report.say(
        "A query is passed up from its sink to the coordinator that plans all of it, and its views are passed down "
        "again to the sites. Each of these messages counts 3.5 ms, the middle of the paper's 1 to 6 ms, because there "
        "is no network to measure. Planning is measured on the machine that wrote this page: the least of three "
        "times, so figures differ a little from run to run. Coordinators of one level plan at the same time. Starting "
        "the operators takes the same time for both planners and is left out. As in the paper, small clusters mean "
        "more levels and more time. The paper gives two reasons for its 70%. One is the smaller search space. Ours is "
        "smaller too, but our coordinators find the best plan without looking at every plan, so the size of the "
        "search space costs them almost nothing. The other is that Top-Down always goes through all levels. Bottom-Up "
        "does not if the streams of a query are near its sink: with all sources and sinks on five neighbouring sites, "
        "it saves what the last column shows. The paper does not say where the streams and sinks of its 25 queries "
        "were. With streams anywhere, nearly every query reaches the top before one coordinator has all its streams, "
        "so both planners go through the same levels."
    )
    report.plot(draw, panels=2)


def _near(workload: Workload) -> Workload:
    """The same queries, with all streams and sinks at the five sites nearest to the site of the first stream."""
    topology = workload.topology
    start = topology.position(next(iter(workload.statistics.sites.values())))
    sites = [topology.names[site] for site in np.argsort(topology.distances()[start], kind="stable")[:5]]
    site_of = {stream: sites[number % 5] for number, stream in enumerate(workload.statistics.sites)}
    requests = tuple(replace(request, sink=sites[number % 5]) for number, request in enumerate(workload.requests))
    return Workload(requests, replace(workload.statistics, sites=site_of), topology)


def _deploy(workload: Workload, name: str, max_cs: int) -> list[Deployed]:
    """Plan each query of a workload several times, and keep the fastest."""
    deployed = []
    for request in workload.requests:
        problem = Problem.of(
            request.query, workload.statistics, workload.topology, MODELS["network_usage"], request.sink
        )
        deployed.append(min((_planned(problem, name, max_cs) for _ in range(REPEATS)), key=lambda one: one.seconds))
    return deployed


def _planned(problem: Problem, name: str, max_cs: int) -> Deployed:
    """Plan one query: the measured planning time, plus the messages up to the level that plans it and down again."""
    hierarchy = hierarchy_of(problem, max_cs)
    views = TimedViews(problem, hierarchy, name)
    if name == "top_down":
        level = hierarchy.height
        views.solve(views.sources(), hierarchy.levels[-1][0], level, problem.sink)
    else:
        level = first_level_with_all(views)
        climb(views, BottomUp(max_cs))
    seconds = views.seconds + 2 * level * SECONDS_PER_MESSAGE
    return Deployed(len(problem.streams), seconds, views.considered)


def _against(runs: dict[tuple[str, int], list[Deployed]], max_cs: int, figure: str) -> str:
    top_down, bottom_up = (sum(getattr(one, figure) for one in runs[name, max_cs]) for name in PLANNERS)
    return percent(bottom_up / top_down - 1)
