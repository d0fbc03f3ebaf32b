"""Figure 12: all planners on the synthetic workload."""

from __future__ import annotations

from itertools import accumulate

from matplotlib.axes import Axes

from braid.model.network.generators import transit_stub_128
from braid.workloads.synthetic import synthetic
from experiments.report import Report, percent

PLANNERS = ("exact", "top_down", "npc", "bottom_up", "in_network", "relaxation")
SEEDS = (1, 2, 3, 4, 5)
PAPER = {"exact": 0.0, "top_down": 0.10, "npc": 0.18, "bottom_up": 0.34}


def run(report: Report) -> None:
    curves: dict[str, list[list[float]]] = {planner: [] for planner in PLANNERS}
    alone: dict[str, float] = dict.fromkeys(PLANNERS, 0.0)
    for seed in report.progress(SEEDS, "networks"):
        workload = synthetic(transit_stub_128(seed=seed), streams=10, queries=100, joins=(2, 5), seed=seed)
        for planner in PLANNERS:
            curves[planner].append(list(accumulate(deployment.cost for deployment in workload.solve(planner))))
            alone[planner] += sum(deployment.cost for deployment in workload.solve(planner, reuse=False))
    total = {planner: sum(curve[-1] for curve in planner_curves) for planner, planner_curves in curves.items()}

    def draw(axes: list[Axes]) -> None:
        for planner, planner_curves in curves.items():
            mean = [sum(values) / len(values) for values in zip(*planner_curves, strict=True)]
            axes[0].plot(range(1, 101), mean, label=planner)
        axes[0].set(xlabel="queries", ylabel="network usage, cumulative", title="with reuse, mean of five networks")
        axes[1].bar(PLANNERS, [alone[planner] / alone["exact"] for planner in PLANNERS])
        axes[1].tick_params(axis="x", rotation=30)
        axes[1].set(title="each query for itself, exact = 1")

    report.table(
        ["planner", "with reuse", "above optimal", "paper: above optimal", "without reuse, above optimal"],
        [
            (
                planner,
                total[planner] / len(SEEDS),
                percent(total[planner] / total["exact"] - 1),
                percent(PAPER[planner]) if planner in PAPER else None,
                percent(alone[planner] / alone["exact"] - 1),
            )
            for planner in PLANNERS
        ],
    )
    report.table(
        ["saved", "paper", "ours, with reuse", "ours, without"],
        [
            (
                f"{better} against {worse}",
                paper,
                *(f"{1 - costs[better] / costs[worse]:.0%}" for costs in (total, alone)),
            )
            for better, worse, paper in (
                ("top_down", "in_network", "40%"),
                ("bottom_up", "in_network", "27%"),
                ("top_down", "relaxation", "59%"),
                ("bottom_up", "relaxation", "49%"),
            )
        ],
    )
    report.say(
        "The planners rank as in the paper, but Top-Down and NPC cost the same, and the differences are smaller. Our "
        "baselines are stronger: their fixed order is the one with the smallest results, In-network places its joins "
        "optimally within a zone, and all of them reuse a derived stream whenever its exact cost is lower. Bottom-Up "
        "is close to Top-Down because few queries have two streams near their sink (see iflow_cluster_size). 'Optimal' "
        "is the best plan for each query in turn; with reuse, that need not be the best for all queries together."
    )
    report.plot(draw, 2)
