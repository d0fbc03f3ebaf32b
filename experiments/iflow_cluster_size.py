"""Figures 6 to 9: search space and cost by cluster size."""

from __future__ import annotations

from itertools import accumulate

from matplotlib.axes import Axes

from braid.model.network.generators import transit_stub_128
from braid.planning.cluster.bottom_up import BottomUp
from braid.planning.cluster.top_down import TopDown
from braid.planning.deployment import Deployment
from braid.workloads.synthetic import synthetic
from experiments.report import Report, percent
from experiments.sinks import found_below_the_top, found_in_one_cluster

SIZES = (4, 8, 16, 32, 64)


def run(report: Report) -> None:
    network = transit_stub_128(seed=1)
    workload = synthetic(network, streams=10, queries=100, joins=(2, 5), seed=1)
    runs: dict[tuple[str, int], list[Deployment]] = {}
    for size in report.progress(SIZES, "cluster sizes"):
        for planner in (BottomUp(size), TopDown(size)):
            runs[planner.name, size] = list(workload.solve(planner))
    cost = {key: sum(deployment.cost for deployment in deployments) for key, deployments in runs.items()}
    plans = {key: sum(deployment.considered for deployment in deployments) for key, deployments in runs.items()}

    def draw(axes: list[Axes]) -> None:
        panels = [("bottom_up", "considered"), ("top_down", "considered"), ("bottom_up", "cost"), ("top_down", "cost")]
        for one, (name, figure) in zip(axes, panels, strict=True):
            for size in SIZES:
                curve = list(accumulate(getattr(deployment, figure) for deployment in runs[name, size]))
                one.plot(range(1, 101), curve, label=f"max_cs {size}")
            one.set(xlabel="queries", title=f"{name}: {'plans' if figure == 'considered' else 'cost'}, cumulative")
            if figure == "considered":
                one.set_yscale("log")

    report.table(
        ["max_cs", "Bottom-Up plans", "Top-Down plans", "Bottom-Up cost", "Top-Down cost"],
        [
            (size, plans["bottom_up", size], plans["top_down", size], cost["bottom_up", size], cost["top_down", size])
            for size in SIZES
        ],
    )
    report.table(
        ["", "paper", "ours"],
        [
            ("max_cs 32 needs fewer plans than 16 (both planners)", "yes", _yes(plans, 32, 16)),
            ("max_cs 64 needs the most plans (both planners)", "yes", _yes(plans, 16, 64)),
            ("Bottom-Up cost, max_cs 64 against 8", "-21%", percent(cost["bottom_up", 64] / cost["bottom_up", 8] - 1)),
            (
                "plans of Bottom-Up against Top-Down, max_cs 16",
                "-67% on average",
                percent(plans["bottom_up", 16] / plans["top_down", 16] - 1),
            ),
            ("Top-Down costs are alike from max_cs 8 on", "yes", _range(cost, "top_down")),
        ],
    )
    together = found_in_one_cluster(workload, 64)
    early = {size: found_below_the_top(workload, size) for size in SIZES}
    report.say(
        "As in the paper, a cluster size of 32 needs fewer plans than 16: most of the planning is done in the upper "
        "clusters, which are smaller. Unlike in the paper, 64 does not need the most plans. It would if many queries "
        f"had all their streams in one large cluster, but only {together} of 100 have. Bottom-Up differs from Top-Down "
        "only where a cluster of the sink, below the top, has two or more streams of a query but not all. Ten sources "
        f"are spread evenly over 128 sites, so that is the case for {early[16]} of 100 queries with clusters of 16, "
        f"{early[32]} with 32 and {early[64]} with 64. So Bottom-Up saves fewer plans here than in the paper. Where it "
        "splits queries, its plans cost more, as the paper says. So its cost goes up from max_cs 8 to 64, not down."
    )
    report.plot(draw, 4)


def _yes(plans: dict[tuple[str, int], int], fewer: int, more: int) -> str:
    return "yes" if all(plans[name, fewer] < plans[name, more] for name in ("bottom_up", "top_down")) else "no"


def _range(cost: dict[tuple[str, int], float], name: str) -> str:
    costs = [cost[name, size] for size in SIZES if size >= 8]
    return f"within {max(costs) / min(costs) - 1:.0%}"
